import { expect } from 'vitest';
import type { AccountName } from '../../sandbox/src/accounts.ts';
import type { Barrier } from '../support/barrier.ts';
import { LISTED } from '../http/cors.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import type { Running } from './node-gateway.ts';
import type { RecordingSandbox } from './recording-sandbox.ts';

/** A gateway on some runtime, and the sandbox that is its upstream; both behind real sockets. */
export interface Stage {
  readonly gateway: string;
  readonly sandbox: RecordingSandbox;
  /** What the gateway has printed. */
  readonly log: Pick<Running, 'stdout' | 'stderr' | 'records' | 'until'>;
}

export interface Scenario {
  /** A sentence that holds on every runtime. */
  readonly name: string;
  run(stage: Stage): Promise<void>;
}

/** Variables that the scenarios rely on, besides the upstream's. */
export const VARIABLES = {
  // Stale as soon as it is stored, the one with a refresh behind it; no other scenario reads these through the cache.
  CACHE_POLICY: '{"getSubuser":{"fresh":0,"stale":300},"getIpAuthorization":{"fresh":0,"stale":0}}',
  UPSTREAM_TIMEOUT_MS: '3000',
  // What one visitor may ask; more than any scenario needs that is not about it.
  RATE_LIMIT_PER_MINUTE: '120',
  // Node then takes the word of `from` for where a client is; on Workers the platform says so, and is not asked.
  TRUSTED_PROXIES: '127.0.0.1',
  ALLOWED_ORIGINS: LISTED,
  SESSIONS: 'true',
  SECRETS: secret('of-the-stage-itself-and-its-sessions'),
} as const;

/** Headers of a client at this address, as a proxy before Node and as the platform before a worker write them. */
export const from = (address: string) => ({ 'x-forwarded-for': address, 'cf-connecting-ip': address });

export interface Visitor {
  readonly token: string;
  /** With the visitor's credential and a request id of its own, which nothing else has. */
  call(options: CallOptions): Promise<TextAnswer>;
  /** The same request straight to the sandbox. */
  direct(options: CallOptions): Promise<TextAnswer>;
  /** Request id that `call` gives to the next request. */
  nextId(): string;
  /** Operations that the sandbox was asked for on behalf of this visitor, in the order of arrival. */
  upstreamCalls(): Promise<readonly string[]>;
}

let visitors = 0;

/**
 * Someone with a credential that nobody has used before, so that the gateway holds nothing of his, for one of the
 * sandbox's accounts.
 */
export async function visit(stage: Stage, name: AccountName): Promise<Visitor> {
  const token = await newToken(stage, name);
  const prefix = `visitor-${++visitors}-`;
  let requests = 0;
  const send = (url: string, id: string, options: CallOptions) =>
    call(url, { token, ...options, headers: { 'x-request-id': id, ...options.headers } });
  return {
    token,
    nextId: () => `${prefix}${requests + 1}`,
    call: (options) => send(stage.gateway, `${prefix}${++requests}`, options),
    direct: (options) => send(stage.sandbox.url, 'direct', options),
    upstreamCalls: async () => {
      const { json } = await call(stage.sandbox.url, { path: '/_sandbox/calls' });
      const calls = json as { operation: string; headers: Record<string, string> }[];
      return calls
        .filter(({ headers }) => headers['x-request-id']?.startsWith(prefix))
        .map(({ operation }) => operation);
    },
  };
}

async function newToken({ sandbox }: Stage, name: AccountName): Promise<string> {
  // The sandbox's identity provider knows everyone; accounts that are refused everything may still log in.
  const body = { provider: 'sandbox', code: `sandbox-code-${name}`, redirect_uri: 'https://app.example/callback' };
  const { json } = await call(sandbox.url, { path: '/api/v2/login/social/', body });
  return (json as { token: string }).token;
}

/** Makes the next call of an operation go wrong at the upstream. */
export async function fail({ sandbox }: Stage, fault: Readonly<Record<string, unknown>>): Promise<void> {
  const { status } = await call(sandbox.url, { path: '/_sandbox/faults', body: fault });
  expect(status).toBe(204);
}

/** Makes the next call of an operation wait at the barrier. */
export async function hold(stage: Stage, operation: string): Promise<Barrier> {
  const at = stage.sandbox.delayAt();
  await fail(stage, { operation, delayMs: 1 });
  return at;
}

/** Text of the upstream's as the gateway gives it: pages link to the gateway. */
export const linked = ({ gateway, sandbox }: Stage, text: string) => text.replaceAll(sandbox.url, gateway);

/** Looks again and again, for at most five seconds. */
export async function eventually(look: () => Promise<void>): Promise<void> {
  await expect.poll(() => look().then(() => 'so it is', String), { timeout: 5_000, interval: 25 }).toBe('so it is');
}

export interface Problem {
  readonly type: string;
  readonly status: number;
  readonly code: string;
  readonly outcome?: string;
  readonly errors: readonly { readonly code: string; readonly field: string | null }[];
}

/** Asserts that an answer is a whole problem with this status and code. */
export function expectProblem(answer: TextAnswer, status: number, code: string): Problem {
  expect([answer.status, answer.headers['content-type']]).toEqual([status, 'application/problem+json']);
  expect(answer.json).toMatchObject({
    type: `/problems/${code}`,
    title: expect.any(String) as unknown,
    status,
    code,
    detail: expect.any(String) as unknown,
    instance: expect.stringMatching(/^\//) as unknown,
    request_id: answer.headers['x-request-id'],
    retryable: expect.any(Boolean) as unknown,
    errors: expect.any(Array) as unknown,
  });
  expect(answer.headers['cache-control']).toBe('no-store');
  return answer.json as Problem;
}
