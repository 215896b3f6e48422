import * as z from 'zod/mini';
import { type ErrorCode, type ErrorItem, GatewayError, isCode } from '../core/errors.ts';

/** The name that a status goes by where the upstream gives no code of its own. */
const STATUS_NAMES = {
  400: 'bad_request',
  401: 'unauthenticated',
  402: 'payment_required',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  406: 'not_acceptable',
  408: 'request_timeout',
  409: 'conflict',
  410: 'gone',
  412: 'precondition_failed',
  413: 'payload_too_large',
  415: 'unsupported_media_type',
  418: 'im_a_teapot',
  422: 'unprocessable_content',
  423: 'locked',
  424: 'failed_dependency',
  425: 'too_early',
  426: 'upgrade_required',
  428: 'precondition_required',
  429: 'rate_limited',
  431: 'request_header_fields_too_large',
  451: 'unavailable_for_legal_reasons',
} as const satisfies Readonly<Record<number, ErrorCode>>;

/** These two mean one thing to a client, whatever word the upstream has for it. */
const FIXED_NAMES = new Set([401, 429]);

const MARKUP = /<[a-z!/?][^>]*>?/i;
const MAX_ITEMS = 50;
const MAX_DEPTH = 8;
const MAX_MESSAGE = 500;
const FIELDS_REFUSED = 'The upstream refused parts of the request; `errors` names each.';

/** The forms an upstream error body takes, turned into one list (`contract.md` section 4, last paragraph). */
interface Finding {
  readonly code?: string | undefined;
  readonly message: string;
  readonly field: string | null;
}

const anObject = z.record(z.string(), z.unknown());

/**
 * An upstream 4xx as an error of ours, with the upstream's status and, where it has one, its code.
 * `conceal` takes out of its texts what a client must not see in them.
 */
export function refusalOf(
  status: number,
  body: string,
  { retryAfter, conceal }: { retryAfter?: number | undefined; conceal: (text: string) => string },
): GatewayError {
  const findings = findingsIn(parsed(body))
    .slice(0, MAX_ITEMS)
    .map((finding) => concealed(finding, conceal));
  const code = codeFor(status, findings);
  const whole = findings.find((finding) => finding.field === null && finding.message !== finding.code)?.message;
  const detail = whole ?? (code === 'validation_failed' ? FIELDS_REFUSED : undefined);
  return GatewayError.refusal(code, status, {
    ...(detail && { detail }),
    ...(retryAfter !== undefined && { retryAfter }),
    ...(status === 401 && { headers: { 'WWW-Authenticate': 'Token' } }),
    errors: findings.map((finding): ErrorItem => ({ ...finding, code: finding.code ?? 'invalid' })),
  });
}

/** The upstream's own code for the whole, else the name of the status. */
function codeFor(status: number, findings: readonly Finding[]): string {
  const own = findings.find(({ field, code }) => field === null && code)?.code;
  if (own && !FIXED_NAMES.has(status)) return own;
  const namesFields = status === 400 && findings.some(({ field }) => field !== null);
  return namesFields ? 'validation_failed' : nameOf(status);
}

/** Errors are short; a longer body is none, and parsing it could cost a hundred times its size. */
const MAX_BODY = 65_536;

function parsed(body: string): unknown {
  if (body.length > MAX_BODY) return undefined;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined; // HTML, a stack, nothing: not for clients
  }
}

function findingsIn(body: unknown): Finding[] {
  if (typeof body === 'string') return messageOf(body, null);
  if (Array.isArray(body)) return body.flatMap((item) => itemFindings(item, null, 0));
  const object = anObject.safeParse(body);
  return object.success ? objectFindings(object.data, null, 0) : [];
}

/** The members that may be an object's own error; `code` and `detail` can be fields with a list too. */
const OWN = ['message', 'detail', 'error', 'code'];

/** An object is an error of its own when it has a text or a code, and besides a set of fields. */
function objectFindings(object: Record<string, unknown>, field: string | null, depth: number): Finding[] {
  const text = [object['message'], object['detail'], object['error']].find((part) => typeof part === 'string');
  const own = messageOf(text ?? '', field, codeOf(object['code']));
  const rest = Object.entries(object).filter(([name, value]) =>
    own.length === 0 ? !isOddCode(name, value) : isField(name, value),
  );
  return [...own, ...rest.flatMap(([name, value]) => itemFindings(value, pathOf(field, name), depth + 1))];
}

/** What stands under `code` and is neither a code nor a sentence may be anything, a secret too. */
const isOddCode = (name: string, value: unknown) => name === 'code' && typeof value === 'string' && !/\s/.test(value);

/** Beside an error of its own, only what holds a list or an object is a field. */
function isField(name: string, value: unknown): boolean {
  return typeof value === 'object' && value !== null && (!OWN.includes(name) || Array.isArray(value));
}

function itemFindings(item: unknown, field: string | null, depth: number): Finding[] {
  if (depth > MAX_DEPTH) return [];
  if (typeof item === 'string') return messageOf(item, field);
  if (Array.isArray(item)) return item.flatMap((inner) => itemFindings(inner, field, depth + 1));
  const object = anObject.safeParse(item);
  return object.success ? objectFindings(object.data, field, depth) : [];
}

/** A code counts without words too: where there are none for people, it stands for them. */
function messageOf(text: unknown, field: string | null, code?: string): Finding[] {
  const words = typeof text === 'string' ? text.trim() : '';
  const message = MARKUP.test(words) ? '' : words;
  return message === '' && code === undefined ? [] : [{ code, message: message || String(code), field }];
}

/** Before it is cut, or half a credential might be left. */
function concealed({ code, message, field }: Finding, conceal: (text: string) => string): Finding {
  return {
    code: code !== undefined && conceal(code) === code ? code : undefined,
    message: conceal(message).slice(0, MAX_MESSAGE),
    field: field === null ? null : conceal(field),
  };
}

function nameOf(status: number): string {
  const names: Readonly<Record<number, ErrorCode | undefined>> = STATUS_NAMES;
  return names[status] ?? `status_${status}`;
}

const codeOf = (value: unknown) => (typeof value === 'string' && isCode(value) ? value : undefined);

/** Names under which errors of the whole are filed. */
const WHOLE = new Set(['non_field_errors', '__all__', 'errors', 'error']);

function pathOf(field: string | null, name: string): string | null {
  if (WHOLE.has(name)) return field;
  return field === null ? name : `${field}.${name}`;
}

const MIN_HOLD_SECONDS = 1;
const MAX_HOLD_SECONDS = 300;

/** `Retry-After` in seconds or as a date, clamped to 1 s to 5 min; `otherwise` where it says nothing usable. */
export function retryAfterOf(
  header: string | undefined,
  { now, otherwise }: { now: number; otherwise: number },
): number {
  const text = header?.trim() ?? '';
  const date = Date.parse(text);
  let seconds = otherwise;
  if (/^\d+(\.\d+)?$/.test(text)) seconds = Math.ceil(Number(text));
  else if (/[a-z]/i.test(text) && !Number.isNaN(date)) seconds = Math.ceil((date - now) / 1000);
  return Math.min(Math.max(seconds, MIN_HOLD_SECONDS), MAX_HOLD_SECONDS);
}
