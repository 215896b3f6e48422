import { expect, onTestFinished } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import { andThen } from '../../src/core/runtime.ts';
import type { Answers, Store } from '../../src/store/store.ts';
import { matchPath } from '../../src/upstream/match.ts';
import type { Method, Operation } from '../../src/upstream/operation.ts';
import { allOperations, type OperationId, operations } from '../../src/upstream/operations/index.ts';
import { type ManualClock, manualClock } from '../support/clock.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import {
  type Barrier,
  type Call,
  hold,
  json,
  perCall,
  reply,
  type ScriptedUpstream,
  startUpstream,
  type Step,
} from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const rows: Readonly<Record<string, Operation>> = operations;

/** Reads that contract.md section 5 lets the cache keep, and seconds: fresh, stale while refreshed, on failure. */
export const CACHED: Readonly<Partial<Record<OperationId, readonly [number, number, number]>>> = {
  getSubscription: [30, 300, 3600],
  getReferralConfig: [30, 300, 3600],
  listReferralChannels: [30, 300, 3600],
  listPaymentMethods: [30, 300, 3600],
  getPaymentMethod: [30, 300, 3600],
  listNotifications: [10, 60, 3600],
  listTransactions: [30, 60, 3600],
  getTransaction: [30, 60, 3600],
  listReferralCredits: [30, 60, 3600],
  getReferralCredit: [30, 60, 3600],
  listEarnOuts: [30, 60, 3600],
  getEarnOut: [30, 60, 3600],
  listPendingPayments: [30, 60, 3600],
  getSubuser: [10, 30, 600],
  getIpAuthorization: [10, 30, 600],
  listProxyActivity: [10, 30, 600],
};

// The keys of a literal above.
export const cachedIds = Object.keys(CACHED) as OperationId[];

export const uncachedIds = allOperations
  .filter(({ id, method }) => method === 'GET' && !CACHED[id])
  .map(({ id }) => id);

export const writeIds = allOperations.filter(({ method }) => method !== 'GET').map(({ id }) => id);

/** A good answer with a mark in it, which `markOf` finds again. */
export const bodyOf = (id: OperationId, mark: number | string): string =>
  rows[id]?.answer === null ? '' : exampleBody(id).replace('{', `{"x_mark":${JSON.stringify(mark)},`);

export const markOf = (text: string): unknown => {
  const found = /"x_mark":("[^"]*"|\d+)/.exec(text)?.[1];
  return found === undefined ? undefined : JSON.parse(found);
};

export const pathOf = (id: OperationId): string => exampleInput(id).path;

/** For `upstream.on`. */
export const callOf = (id: OperationId): string => `${rows[id]?.method} ${pathOf(id)}`;

/** Whether a call is one of that operation, whatever its id and query. */
export const isCallTo =
  (id: OperationId) =>
  ({ method, path }: Call): boolean =>
    matchPath(path)?.methods.get(method as Method)?.id === id;

/** The good answer to whichever operation is called. */
export const goodAnswer = ({ method, path }: Call, mark: number | string): Step => {
  const operation = matchPath(path)?.methods.get(method as Method);
  if (!operation) throw new Error(`${method} ${path} is no operation`);
  // Ids of the table, which `match` reads too.
  return json(operation.answer === null ? 204 : 200, bodyOf(operation.id as OperationId, mark));
};

/** Counts events and lets a test wait for the next ones. */
class Turnstile {
  total = 0;
  #waiters: { readonly until: number; readonly resolve: () => void }[] = [];

  pass(): void {
    this.total++;
    for (const { until, resolve } of this.#waiters) if (this.total >= until) resolve();
    this.#waiters = this.#waiters.filter(({ until }) => this.total < until);
  }

  /** Resolves once that many more have passed. */
  next(more = 1): Promise<void> {
    const until = this.total + more;
    return new Promise((resolve) => void this.#waiters.push({ until, resolve }));
  }
}

interface WatchedStore extends Store {
  /** A memory store answers at once: when one has passed, its reader waits or has joined. */
  readonly lookups: Turnstile;
  /** Attempts, successful or not. */
  readonly saves: Turnstile;
  readonly drops: Turnstile;
  readonly touches: Turnstile;
}

const watchedStore = (store: Store): WatchedStore => {
  const { answers } = store;
  const turnstiles = {
    lookups: new Turnstile(),
    saves: new Turnstile(),
    drops: new Turnstile(),
    touches: new Turnstile(),
  };
  const passing = <T>(turnstile: Turnstile, result: T): T => {
    turnstile.pass();
    return result;
  };
  const watched: Answers = {
    lookup: (place) => passing(turnstiles.lookups, answers.lookup(place)),
    save: (place, entry, versions) => passing(turnstiles.saves, answers.save(place, entry, versions)),
    drop: (place) => passing(turnstiles.drops, answers.drop(place)),
    touch: (account, tags) => passing(turnstiles.touches, answers.touch(account, tags)),
  };
  return {
    ...turnstiles,
    records: store.records,
    limits: store.limits,
    answers: watched,
    visit: (arrival) => andThen(store.visit(arrival), ({ use }) => ({ use, known: watched })),
  };
};

/** Deadlines wait for `advance`; pauses between attempts are shorter than this and pass by themselves. */
const LONGEST_PAUSE_MS = 1000;

export const clockOfDeadlines = (): ManualClock => {
  const clock = manualClock();
  return {
    ...clock,
    after(ms, run) {
      if (ms >= LONGEST_PAUSE_MS) return clock.after(ms, run);
      const pause = setImmediate(run);
      return () => clearImmediate(pause);
    },
  };
};

type Asking = Partial<CallOptions>;

export interface World {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
  readonly clock: ManualClock;
  readonly store: WatchedStore;
  /** The account that asks unless another is named. */
  readonly token: string;
  readonly advance: (seconds: number) => void;
  /** The operation's example request. */
  readonly ask: (id: OperationId, options?: Asking) => Promise<TextAnswer>;
  /** From then on every call without a script of its own gets a good answer, marked with what `mark` says then. */
  readonly answerAll: (mark: (call: Call) => number | string) => void;
}

/** A gateway before a scripted upstream; at the end of the test an upstream call that nobody expected fails it. */
export async function openWorld(
  env: Readonly<Record<string, string>> = {},
  kept: Store = new MemoryStore({ maxBytes: 8_388_608 }),
): Promise<World> {
  const upstream = await startUpstream();
  const clock = clockOfDeadlines();
  const store = watchedStore(kept);
  const gateway = await startGateway(upstream.url, { env: { RATE_LIMIT_PER_MINUTE: '0', ...env }, clock, store });
  const token = secret();
  onTestFinished(async () => {
    await upstream.close();
    await gateway.close();
    upstream.assertNoUnexpected();
  });
  return {
    upstream,
    gateway,
    clock,
    store,
    token,
    advance: (seconds) => clock.advance(seconds * 1000),
    ask(id, options = {}) {
      const { method, path, body } = exampleInput(id);
      const { token: other = token, ...others } = options;
      return call(gateway.url, { method, path, token: other, ...(body !== undefined && { body }), ...others });
    },
    answerAll: (mark) =>
      void upstream.on(
        () => true,
        perCall((to) => goodAnswer(to, mark(to))),
      ),
  };
}

export const cacheStatusOf = ({ headers }: TextAnswer): string | undefined => headers['cache-status'];

/** How the cache came to an answer, and what was in it. */
export const seen = (answer: TextAnswer): readonly unknown[] => [
  answer.status,
  cacheStatusOf(answer),
  markOf(answer.text),
];

export const MISS = 'portico; fwd=miss; stored';
export const NO_CACHE = { 'Cache-Control': 'no-cache' } as const;
export const NO_STORE = { 'Cache-Control': 'no-store' } as const;

export const hit = (ttl: number): string => `portico; hit; ttl=${ttl}`;

/** A hit on a fresh copy, however old. */
export const isHit = expect.stringMatching(/^portico; hit; ttl=[1-9]/) as unknown;

export const askAll = (world: World, ids: readonly OperationId[], options?: Asking): Promise<TextAnswer[]> =>
  Promise.all(ids.map((id) => world.ask(id, options)));

/** What the upstream holds, as a number that its good writes raise and all its answers carry. */
export const versioned = (world: World): { version: number } => {
  const state = { version: 1 };
  world.answerAll(({ method }) => (method === 'GET' ? state.version : ++state.version));
  return state;
};

/** What was true when the call came, told when the barrier opens. */
export const goodAfter = (gate: Barrier, to: Call, mark: number): Step => reply(hold(gate), goodAnswer(to, mark));

/** Answers a write, which changes what the upstream holds only now. */
export const raising = (state: { version: number }): Step => perCall((to) => goodAnswer(to, ++state.version));

/** What each write touches, as contract.md section 5 has it. */
export const TOUCHED: Readonly<Partial<Record<OperationId, readonly OperationId[]>>> = {
  updateReferralConfig: ['getReferralConfig'],
  deletePaymentMethod: ['listPaymentMethods', 'getPaymentMethod', 'getSubscription'],
  refreshSubuser: ['getSubuser'],
  refreshProxyList: ['getSubuser'],
  deleteIpAuthorization: ['getIpAuthorization'],
  purchasePlan: cachedIds,
  startIdVerification: [],
  createApiKey: [],
  registerSocial: [],
  loginSocial: [],
};

export const touchedBy = (write: OperationId) => TOUCHED[write] ?? [];

/** The first answer is held, later ones are marked 2, 3 … */
export const holdFirst = ({ upstream }: World, id: OperationId, gate: Barrier) =>
  upstream.on(
    callOf(id),
    reply(hold(gate), json(200, bodyOf(id, 1))),
    ...[2, 3, 4].map((mark) => json(200, bodyOf(id, mark))),
  );

export const requestOf = ({ token }: World, id: OperationId) =>
  `GET ${pathOf(id)} HTTP/1.1\r\nHost: portico.test\r\nAuthorization: Token ${token}\r\n\r\n`;
