import { printInstant } from './time.ts';

/** Fields that the upstream, written in Python, prints as floats: `25.0`, never `25`. */
const FLOATS: ReadonlySet<string> = new Set([
  'amount',
  'average_concurrency',
  'average_rps',
  'bandwidth_average',
  'bandwidth_projected',
  'bandwidth_total',
  'credits_earned',
  'credits_gained',
  'credits_used',
  'free_credits',
  'handshake_duration',
  'minimum_earn_out_amount',
  'payouts_earned',
  'proxy_limit',
  'referral_credit_ratio',
  'referral_maximum_credits',
  'refund_amount',
  'request_duration',
  'total_commission',
  'total_credits_earned',
  'total_payouts_earned',
  'total_revenue',
  'tunnel_duration',
]);

/** Every resource names its timestamps so, and nothing else. */
const INSTANT = /(_at|_date)$|^timestamp$/;

/** JSON text as the upstream writes it. How a number is written goes by the name of its field. */
export function printJson(value: unknown, field = ''): string {
  if (typeof value === 'number') return printNumber(value, field);
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map((item) => printJson(item, field)).join(',')}]`;
  if (typeof value === 'object' && value !== null) return printObject(value);
  return JSON.stringify(value);
}

function printNumber(value: number, field: string): string {
  if (INSTANT.test(field)) return `"${printInstant(value)}"`;
  return FLOATS.has(field) && Number.isInteger(value) ? value.toFixed(1) : String(value);
}

function printObject(object: object): string {
  const members = Object.entries(object)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${printJson(value, name)}`);
  return `{${members.join(',')}}`;
}
