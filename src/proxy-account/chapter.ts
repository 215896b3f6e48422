import type { CachePolicy, Refusal, Row } from '../upstream/operation.ts';

const cachedFor = (fresh: number, stale: number, onError: number): CachePolicy => ({ fresh, stale, onError });

/** What the user sets, or owns for long. */
export const SETTINGS = cachedFor(30, 300, 3600);
/** What has happened. */
export const RECORDS = cachedFor(30, 60, 3600);
export const NOTICES = cachedFor(10, 60, 3600);
/** What changes while proxies are used. */
export const PROXIES = cachedFor(10, 30, 600);

/** Any call may be refused with these. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  '2fa_needed': {
    status: 403,
    title: 'Two-factor authentication needed',
    description: 'The account holder has to give a second factor.',
  },
  account_suspended: { status: 403, description: 'The upstream has suspended the account.' },
  api_key_not_allowed: {
    status: 403,
    title: 'API key not allowed',
    description: 'The upstream does not allow this with an API key.',
  },
};

/** Rows that stand under one heading of the OpenAPI document. */
export function chapter<const Rows extends Readonly<Record<string, Row>>>(
  name: string,
  description: string,
  rows: Rows,
) {
  const tag = { name, description };
  const told = Object.entries(rows).map(([id, row]) => [
    id,
    { ...row, tag, refusals: { ...REFUSALS, ...row.refusals } },
  ]);
  return Object.fromEntries(told) as Rows; // with two members more, which no type needs
}
