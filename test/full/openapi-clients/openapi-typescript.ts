import type { components, operations } from './generated/openapi-typescript.ts';
import type { Same } from '../../support/same.ts';

type Schemas = components['schemas'];
type Contents = operations['getAccountOverview']['responses'][200]['content'];

export const asJson: Same<Contents['application/json'], Schemas['AccountOverview']> = true;
export const asLines: Same<Contents['application/x-ndjson'], Schemas['OverviewLine']> = true;
/** What is left where somebody takes both for one. */
export const neverText: Same<Extract<Contents[keyof Contents], string>, never> = true;

export function overview({ data, meta }: Schemas['AccountOverview']): (number | string | null | undefined)[] {
  // @ts-expect-error an optional section may be null
  const last4 = data.payment_method.last4;
  return [data.subscription.plan, meta.sections.subscription.age, last4, data.payment_method?.last4];
}

type Data = Schemas['AccountOverview']['data'];
// @ts-expect-error a required section is there
export const withoutRequired: Data = { notifications: null };
export const withNull = (data: Data): Data => ({
  ...data,
  notifications: null,
  // @ts-expect-error and never null
  subscription: null,
});

export function textOf(line: Schemas['OverviewLine']): string {
  if ('complete' in line) return (line.complete satisfies true) ? 'the end' : '';
  // @ts-expect-error only a section that failed has one
  line.error.detail.trim();
  return line.error ? `${line.section}: ${line.error.detail}` : `${line.section}, ${line.state}`;
}

const HELP: Partial<Record<Schemas['ProblemCode'], string>> = {
  upstream_timeout: 'Try again.',
  '2fa_needed': 'Sign in.',
};
export const known: Schemas['Problem']['code'] = 'rate_limited' satisfies Schemas['ProblemCode'];
export const ofUpstream: Schemas['Problem']['code'] = 'card_declined';
// @ts-expect-error not a code of ours
export const misspelt: Schemas['ProblemCode'] = 'upstream_timout';

export const request: Schemas['BatchRequest'] = { requests: [{ id: 'a', path: '/api/v2/subscription/' }] };
// @ts-expect-error an item has a path
export const withoutPath: Schemas['BatchRequest'] = { requests: [{ id: 'a' }] };

export const answers = ({ responses }: Schemas['BatchAnswer']): (string | undefined)[] =>
  responses.map((one) => {
    if (one.status !== 200) return HELP[one.body.code as Schemas['ProblemCode']] ?? one.body.detail;
    // @ts-expect-error with 200 it is no problem
    return one.body.detail ?? (one.body as Schemas['Subscription']).term;
  });
