import type { AccountName } from '../../sandbox/src/accounts.ts';
import { createSandbox } from '../../sandbox/src/sandbox.ts';
import type { Sandbox, SandboxOptions } from '../../sandbox/src/sandbox.ts';

/** Summer in California: timestamps end in -07:00. */
export const START = Date.parse('2026-06-09T18:50:08.101Z');

export const DAY_SECONDS = 24 * 3600;

interface Request {
  readonly as?: AccountName;
  readonly key?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; `null` when it is empty. */
  readonly json: unknown;
}

export interface Client {
  readonly sandbox: Sandbox;
  readonly call: (method: string, path: string, request?: Request) => Promise<Reply>;
  readonly get: <T = Record<string, unknown>>(path: string, as?: AccountName) => Promise<T>;
}

/** A fresh sandbox with a clock that stands still, and a client that speaks to it. */
export function createClient(options: SandboxOptions = {}): Client {
  const sandbox = createSandbox({ now: () => START, ...options });
  const call: Client['call'] = async (method, path, { as, body, headers, key } = {}) => {
    const credential = key ?? (as && `sandbox-${as}-key`);
    const response = await sandbox.app.request(`http://upstream.test${path}`, {
      method,
      headers: {
        ...(credential && { Authorization: `Token ${credential}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return read(response);
  };
  // The caller names the shape that it goes on to check.
  const get = async <T>(path: string, as: AccountName = 'paid') => (await call('GET', path, { as })).json as T;
  return { sandbox, call, get };
}

async function read(response: Response): Promise<Reply> {
  const text = await response.text();
  const isJson = response.headers.get('Content-Type')?.includes('json') && text !== '';
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : null };
}

export interface Page {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: readonly Record<string, unknown>[];
}
