import type {
  AccountOverview,
  AccountOverviewLine,
  BatchAnswer,
  BatchRequest,
  GetAccountOverviewError,
  GetAccountOverviewResponse,
  Problem,
  ProblemCode,
  PurchaseAnswer,
  PurchasePlanResponse,
  Subscription,
} from './generated/hey-api/types.gen.ts';
import type { Same } from './same.ts';

export const asJson: Same<GetAccountOverviewResponse, AccountOverview> = true;
export const ofWrite: Same<PurchasePlanResponse, PurchaseAnswer> = true;
export const asProblem: Same<GetAccountOverviewError, Problem> = true;

export function overview({ data, meta }: AccountOverview): (number | string | null | undefined)[] {
  // @ts-expect-error an optional section may be null
  const last4 = data.payment_method.last4;
  return [data.subscription.plan, meta.sections.subscription.age, last4, data.payment_method?.last4];
}

type Data = AccountOverview['data'];
// @ts-expect-error a required section is there
export const withoutRequired: Data = { notifications: null };
export const withNull = (data: Data): Data => ({
  ...data,
  notifications: null,
  // @ts-expect-error and never null
  subscription: null,
});

export function textOf(line: AccountOverviewLine): string {
  if ('complete' in line) return (line.complete satisfies true) ? 'the end' : '';
  if ('error' in line)
    return `${line.section satisfies 'payment_method' | 'notifications' | 'referral_config'}: ${line.error.detail}`;
  if (line.section === 'subscription') return line.data.term;
  // @ts-expect-error without a card it is null
  if (line.section === 'payment_method') return line.data.id.toFixed();
  return `${line.section}, ${line.state}`;
}

const HELP: Partial<Record<ProblemCode, string>> = { upstream_timeout: 'Try again.', '2fa_needed': 'Sign in.' };
export const known: Problem['code'] = 'rate_limited' satisfies ProblemCode;
export const ofUpstream: Problem['code'] = 'card_declined';
// @ts-expect-error not a code of ours
export const misspelt: ProblemCode = 'upstream_timout';

export const request: BatchRequest = { requests: [{ id: 'a', path: '/api/v2/subscription/' }] };
// @ts-expect-error an item has a path
export const withoutPath: BatchRequest = { requests: [{ id: 'a' }] };

export const answers = ({ responses }: BatchAnswer): (string | undefined)[] =>
  responses.map((one) => {
    if (one.status !== 200) return HELP[one.body.code as ProblemCode] ?? one.body.detail;
    // @ts-expect-error with 200 it is no problem
    return one.body.detail ?? (one.body as Subscription).term;
  });
