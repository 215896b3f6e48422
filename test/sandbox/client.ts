import type { AccountName } from '../../sandbox/src/accounts.ts';
import { createSandbox, type SandboxOptions } from '../../sandbox/src/sandbox.ts';

export const ORIGIN = 'http://upstream.test';
/** Summer in California: timestamps end in -07:00. */
export const START = Date.parse('2026-06-09T18:50:08.101Z');
export const DAY_SECONDS = 24 * 3600;

interface Request {
  readonly as?: AccountName | undefined;
  readonly key?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

export interface Page {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: readonly Record<string, unknown>[];
}

export type Client = ReturnType<typeof createClient>;

/** A fresh sandbox with a clock that stands still, and a client that speaks to it. */
export function createClient(options: SandboxOptions = {}) {
  const sandbox = createSandbox({ now: () => START, ...options });
  const call = async (method: string, path: string, { as, body, key, headers = {} }: Request = {}) => {
    const credential = key ?? (as && `sandbox-${as}-key`);
    const all = new Headers(credential ? { Authorization: `Token ${credential}` } : {});
    if (body !== undefined) all.set('Content-Type', 'application/json');
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    const sent = typeof body === 'string' ? body : JSON.stringify(body);
    const init = { method, headers: all, ...(body !== undefined && { body: sent }) };
    const response = await sandbox.app.request(ORIGIN + path.replace(ORIGIN, ''), init);
    const text = await response.text();
    const isJson = response.headers.get('Content-Type')?.includes('json') && text !== '';
    const json = isJson ? (JSON.parse(text) as unknown) : null;
    return { status: response.status, headers: response.headers, text, json };
  };
  // The caller names the shape that it goes on to check.
  const get = async <T = Record<string, unknown>>(path: string, as: AccountName = 'paid') =>
    (await call('GET', path, { as })).json as T;
  /** Every page, from one to the next. */
  const all = async (path: string, as?: AccountName) => {
    const found: Page['results'][number][] = [];
    for (let next: string | null = path; next !== null;) {
      const page: Page = await get<Page>(next, as);
      found.push(...page.results);
      next = page.next;
    }
    return found;
  };
  return { sandbox, call, get, all };
}
