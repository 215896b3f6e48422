import { expect, onTestFinished } from 'vitest';
import {
  type CallOptions,
  type ClientOptions,
  createClient,
  each,
  type OperationId,
  outcomeOf,
  type Portico,
  PorticoProblem,
  type Problem,
  readBatch,
  streamOverview,
  watchOverview,
} from '../../client/src/index.ts';
import { createClock } from '../support/client-clock.ts';

export const SUBSCRIPTION = 'GET /api/v2/subscription/';
export const WRITE = 'PATCH /api/v2/referral/config/';
export const PURCHASE = 'POST /api/v2/subscription/checkout/purchase/';
export const LIST = '/api/v2/payment/transaction/';
/** What there is to buy. */
export const PLAN = { proxy_type: 'shared', proxy_countries: { US: 5 }, term: 'monthly' } as const;
export const BOUGHT = { plan: 2001 } as const;

/** A request as the client has sent it. */
export interface Call {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly init: RequestInit;
  /** When the client wants no more of its answer. */
  readonly left: Promise<void>;
  readonly leave: () => void;
}

export type Answer = (call: Call) => Response | Promise<Response>;

export const json = (status: number, value: unknown = '', headers: Record<string, string> = {}): Answer => {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const all = { 'content-type': 'application/json', ...headers };
  return () => new Response(text || null, { status, headers: all });
};

export const html = (status: number): Answer => json(status, '<!doctype html>', { 'content-type': 'text/html' });

/** The connection is cut before there is an answer. */
export const lost: Answer = () => Promise.reject(new TypeError('fetch failed'));

/** A body that comes piece by piece: an error cuts it off, and a promise is waited for. */
export const streamed =
  (pieces: readonly (string | Uint8Array | Error | Promise<unknown>)[], status = 200): Answer =>
  ({ init: { signal }, leave }) => {
    const left = [...pieces];
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => signal?.addEventListener('abort', () => controller.error(signal.reason)),
      async pull(controller) {
        const piece = left.shift();
        if (piece === undefined) controller.close();
        else if (piece instanceof Error) controller.error(piece);
        else if (piece instanceof Promise) await piece.then(() => controller.enqueue(new Uint8Array(0)));
        else controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
      },
      cancel: leave,
    });
    return new Response(body, { status, headers: { 'content-type': 'application/json' } });
  };

/** Its headers arrive, and a part of its body. */
export const cut = (status: number): Answer => streamed(['{"id":10', new TypeError('terminated')], status);

/** An answer that waits until it is released. */
export function hold(answer: Answer = json(200, {})) {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { answer: (call: Call) => promise.then(() => answer(call)), release: () => resolve() };
}

export const problemBody = (status: number, code: string, more: Partial<Problem> = {}): Problem => ({
  type: `/problems/${code}`,
  title: 'A title',
  status,
  code,
  detail: `A detail of ${code}.`,
  instance: '/asked',
  request_id: 'request-1',
  retryable: false,
  errors: [],
  ...more,
});

/** A problem as the gateway sends it. */
export const problem = (...given: Parameters<typeof problemBody>): Answer =>
  json(given[0], problemBody(...given), { 'content-type': 'application/problem+json' });

export const FAILED = problem(503, 'a_code', { retryable: true });
export const UNKNOWN = problem(504, 'upstream_timeout', { outcome: 'unknown' });

/** Its whole answer, or 304 to who has its ETag, which does not say whose it is. */
export const ETAG = '"the same for all"';
export const revalidated: Answer = (call) => {
  const { headers, target } = call;
  const of = headers['authorization'] ?? headers['cookie'];
  return headers['if-none-match'] === ETAG
    ? json(304, '', { etag: ETAG })(call)
    : json(200, { of, target }, { etag: ETAG })(call);
};
export const isConditional = ({ headers }: Call): boolean => 'if-none-match' in headers;

/** Resolves when nothing is left to do but what somebody waits for. */
export const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** A server that stands for the gateway, and does what the test says. A call of which nothing was said fails it. */
function createGateway() {
  const scripts: { readonly where: string; readonly answers: Answer[]; readonly isOnce: boolean }[] = [];
  const calls: Call[] = [];
  const unexpected: string[] = [];
  const waiting: (() => void)[] = [];
  onTestFinished(() => expect(unexpected).toEqual([]));

  const script =
    (isOnce: boolean) =>
    (where: string, ...answers: Answer[]) =>
      void scripts.unshift({ where, answers: [...answers], isOnce });

  /** The last of its answers stands, unless it was to be given once. */
  const answerTo = ({ method, path, target }: Call): Answer | undefined => {
    const names = ['*', `${method} ${path}`, `${method} ${target}`];
    const found = scripts.find(({ where, answers }) => names.includes(where) && answers.length > 0);
    return found && (found.answers.length > 1 || found.isOnce) ? found.answers.shift() : found?.answers[0];
  };

  const fetch = (address: unknown, init: RequestInit = {}): Promise<Response> => {
    const { method = 'GET', headers, body, signal } = init;
    const target = String(address).replace(/^http:\/\/[^/]+/, '');
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    const named = Object.fromEntries(new Headers(headers));
    const path = target.replace(/\?.*/, '');
    const call: Call = { method, target, path, headers: named, body: (body ?? '') as string, init, left, leave };
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const answer = answerTo(call);
    if (!answer) unexpected.push(`${method} ${target}`);
    calls.push(call);
    for (const look of waiting) look();
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => {
        leave();
        reject(signal.reason as Error);
      });
      Promise.resolve((answer ?? lost)(call)).then(resolve, reject);
    });
  };

  return {
    fetch,
    calls,
    callsTo: (where: string) => calls.filter(({ method, path }) => `${method} ${path}` === where),
    /** `*`, or a method and a path, with the query or without. What was said last counts first. */
    on: script(false),
    once: script(true),
    /** That call, counted from 1, once it has come. */
    arrived: (number: number): Promise<Call> =>
      new Promise((resolve) => {
        const look = () => void (calls.length >= number && resolve(calls[number - 1]!));
        waiting.push(look);
        look();
      }),
  };
}

/** A client of such a gateway, with such a clock. */
export function openStandIn(options: ClientOptions = {}, clock = createClock()) {
  const gateway = createGateway();
  const { fetch } = gateway;
  const given = { url: 'http://gateway.test', token: 'one', fetch: fetch as typeof globalThis.fetch };
  const clientWith = (more: ClientOptions) => createClient({ ...given, ...more });
  return { gateway, clock, portico: clientWith(options), clientWith };
}

/** Any operation of the table, which types know one by one. */
export const callTo = (portico: Portico, id: OperationId) =>
  portico[id] as (input?: object, options?: CallOptions) => Promise<unknown>;

/** What a call throws. */
export const thrownBy = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => Promise.reject(new Error('it did not throw')),
    (error: unknown) => error,
  );

/** The problem that a call throws. */
export async function problemOf(call: Promise<unknown>): Promise<PorticoProblem> {
  const error = await thrownBy(call);
  expect(error).toBeInstanceOf(PorticoProblem);
  return error as PorticoProblem;
}

/** What is told of a problem in most tests. */
export const gistOf = ({ code, status, outcome }: PorticoProblem): string =>
  [code, status, ...(outcome ? [outcome] : [])].join(' ');
export const gistThrown = async (call: Promise<unknown>): Promise<string> => gistOf(await problemOf(call));

const first = async (entries: AsyncIterable<unknown>) => {
  for await (const entry of entries) return entry;
  return undefined;
};

/** Good for every kind of call. */
const ALL = {
  results: [],
  next: null,
  responses: [],
  complete: true,
  data: { subscription: { plan: 1 }, pending_payments: { results: [] } },
  meta: { sections: {} },
};
export const GOOD = json(200, `${JSON.stringify(ALL)}\n`);

type Kind = readonly [name: string, act: (portico: Portico, signal?: AbortSignal) => Promise<unknown>];
/** Every way in which something is read. */
export const READS: readonly Kind[] = [
  ['a read', (portico, signal) => portico.getSubscription(undefined, { signal })],
  ['an overview', (portico, signal) => portico.getAccountOverview({}, { signal })],
  ['the answer itself', (portico, signal) => portico.response('getSubscription', undefined, { signal })],
  ['a stream', (portico, signal) => first(streamOverview(portico, 'getAccountOverview', {}, { signal }))],
  ['a watch', (portico, signal) => first(watchOverview(portico, 'account-overview', { signal }))],
  ['a list', (portico, signal) => first(each(portico, 'listTransactions', {}, { signal }))],
  ['a batch', (portico, signal) => readBatch(portico, { a: ['getSubscription'] }, { signal })],
  ['outcomeOf', (portico, signal) => outcomeOf(portico, { subscription: { plan: 1 } }, { signal })],
];
export const WRITES: readonly Kind[] = [
  ['a write', (portico, signal) => portico.updateReferralConfig({ mode: 'credits' }, { signal })],
  ['a purchase', (portico, signal) => portico.purchasePlan(PLAN, { signal })],
  ['a purchase with a key', (portico, signal) => portico.purchasePlan(PLAN, { signal, idempotencyKey: 'mine' })],
  ['a sign-in', (portico, signal) => portico.createSession({ token: 'a' }, { signal })],
];
export const KINDS = [...READS, ...WRITES];
