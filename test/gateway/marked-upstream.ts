import { exampleBody } from '../support/examples.ts';
import { matchPath, type OperationId } from '../support/account-api.ts';
import type { Method } from '../../src/upstream/operation.ts';
import { secret } from '../support/secrets.ts';

/** An account and the one word that stands in everything of it. */
export interface Marked {
  readonly token: string;
  readonly mark: string;
}

export const markedAccounts = (count: number): Marked[] =>
  Array.from({ length: count }, (_, index) => ({ token: secret(`account${index}`), mark: `mark-${index}-of` }));

/** Whose marks are in a text. */
export const marksIn = (text: string): ReadonlySet<string> => new Set(text.match(/mark-\d+-of/g));

const templates = new Map<OperationId, string>();

const templateOf = (id: OperationId) => {
  const known = templates.get(id) ?? exampleBody(id);
  templates.set(id, known);
  return known;
};

export interface MarkedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Each hundredth call or so fails in one of these ways; refusals are rarer, since they drop all of an account. */
const TROUBLE: readonly MarkedAnswer[] = [
  { status: 503, headers: {}, body: '' },
  { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' },
  { status: 404, headers: {}, body: '{"detail":"Not found."}' },
  { status: 500, headers: {}, body: '' },
];

const REFUSALS: readonly MarkedAnswer[] = [
  { status: 401, headers: {}, body: '{"detail":"Invalid token."}' },
  { status: 403, headers: {}, body: '{"detail":"Suspended.","code":"account_suspended"}' },
];

const isOneIn = (n: number, calls: number) => calls % n === n - 1;

/**
 * Answers by the credential alone, with the account's mark in every object. Every account has the same ETag for the
 * same thing, so that a condition sent with the wrong credential would be believed.
 */
export class MarkedUpstream {
  calls = 0;
  readonly unexpected: string[] = [];
  readonly #marks: ReadonlyMap<string, string>;

  constructor(accounts: readonly Marked[]) {
    this.#marks = new Map(accounts.map(({ token, mark }) => [`Token ${token}`, mark]));
  }

  answer(method: string, target: string, headers: Readonly<Record<string, unknown>>): MarkedAnswer {
    const calls = this.calls++;
    const id = matchPath(target.split('?')[0] ?? '')?.methods.get(method as Method)?.id as OperationId | undefined;
    const mark = this.#marks.get(String(headers['authorization']));
    if (id === undefined || mark === undefined) this.unexpected.push(`${method} ${target}`);
    if (isOneIn(97, calls)) return TROUBLE[(calls % TROUBLE.length) as 0]!;
    if (isOneIn(1009, calls)) return REFUSALS[(calls % REFUSALS.length) as 0]!;
    const etag = `"${id}"`;
    if (headers['if-none-match'] === etag) return { status: 304, headers: { etag }, body: '' };
    // Only some have one: what has none is fetched anew.
    const validators: Record<string, string> = isOneIn(2, calls) ? { etag } : {};
    const body = id === undefined || mark === undefined ? '{}' : templateOf(id).replaceAll('{', `{"x_mark":"${mark}",`);
    return { status: 200, headers: validators, body: body.replaceAll(',}', '}') };
  }
}

/** Numbers that look random and are the same in every run (a linear congruential generator, as in Numerical Recipes). */
export const randomOf = (seed: number) => {
  let state = seed >>> 0;
  return (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};
