import { expect, onTestFinished, vi } from 'vitest';
import { type OperationId, operations } from '../../src/upstream/operations/index.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { allOperations } from '../../src/upstream/operations/index.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { goodAnswer, openWorld, type World } from '../cache/world.ts';
import { manualClock, type ManualClock } from '../support/clock.ts';
import { exampleInput } from '../support/examples.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { type Call, json, perCall, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const rows: Readonly<Record<OperationId, Operation>> = operations;

export const readIds = allOperations.filter(({ method }) => method === 'GET').map(({ id }) => id);

/** Calls that have no account: the upstream's limits on one say nothing about them. */
export const isSocial = (id: OperationId): boolean => rows[id].credential === 'none';

/** Never cached: each request for it is one upstream call. */
export const PLAIN: OperationId = 'getPendingPayment';

/** Never retried. */
export const WRITE: OperationId = 'createApiKey';

/** A clock that tells when somebody begins to wait. */
export interface WatchedClock extends ManualClock {
  /** Resolves once so many timers of such a length have been set, those before now included. */
  waits(isMeant: (ms: number) => boolean, times?: number): Promise<void>;
  /** Lengths of all timers so far. */
  readonly lengths: readonly number[];
}

export const watchedClock = (): WatchedClock => {
  const clock = manualClock();
  const lengths: number[] = [];
  let watchers: readonly (() => void)[] = [];
  return {
    ...clock,
    lengths,
    after(ms, run) {
      lengths.push(ms);
      const cancel = clock.after(ms, run);
      for (const look of watchers) look();
      return cancel;
    },
    waits: (isMeant, times = 1) =>
      new Promise((resolve) => {
        const look = () => {
          if (lengths.filter(isMeant).length >= times) resolve();
        };
        watchers = [...watchers, look];
        look();
      }),
  };
};

/** Pauses between attempts; every deadline of these tests is longer. */
export const isPause = (ms: number): boolean => ms <= 200;

type Asking = Partial<CallOptions>;

export interface TimedWorld {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
  readonly clock: WatchedClock;
  readonly token: string;
  readonly ask: (id: OperationId, options?: Asking) => Promise<TextAnswer>;
}

/** Like the world of the cache's tests, with a clock on which no pause passes by itself. */
export async function openTimedWorld(env: Readonly<Record<string, string>> = {}): Promise<TimedWorld> {
  const upstream = await startUpstream();
  const clock = watchedClock();
  const store = new MemoryStore({ maxBytes: 8_388_608 });
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
    token,
    ask: (id, options = {}) => call(gateway.url, requestFor(id, { token, ...options })),
  };
}

/** The operation's example request. */
export const requestFor = (id: OperationId, options: Asking = {}): CallOptions => {
  const { method, path, body } = exampleInput(id);
  return { method, path, ...(body !== undefined && { body }), ...options };
};

/** From now on every call gets a good answer, unless it has a script of its own. */
export const answerAll = (upstream: ScriptedUpstream, mark: number | string = 1): void =>
  void upstream.on(
    () => true,
    perCall((to) => goodAnswer(to, mark)),
  );

export const tokenOf = ({ headers }: Call): string => (headers['authorization'] ?? '').replace(/^Token /, '');

type Asker = Pick<World, 'upstream' | 'ask'>;

/** So many writes at once, each of an account of its own, which the upstream answers with 500. */
const failing = async ({ upstream, ask }: Asker, times: number) => {
  upstream.once(({ method }) => method === 'POST', ...Array.from({ length: times }, () => json(500, '')));
  await Promise.all(Array.from({ length: times }, () => ask(WRITE, { token: secret() })));
};

/** After it the circuit is open, and the upstream's calls so far are forgotten. */
export async function openCircuit(world: Asker): Promise<void> {
  await failing(world, 20);
  world.upstream.calls.length = 0;
}

/** A world in which the circuit has just opened. */
export async function brokenWorld(env: Readonly<Record<string, string>> = {}): Promise<World> {
  const world = await openWorld(env);
  await openCircuit(world);
  return world;
}

/** The gateway has noticed that so many clients left. */
export const noticed = ({ gateway }: Pick<TimedWorld, 'gateway'>, left: number): Promise<void> =>
  vi.waitFor(() => expect(gateway.lines.filter(({ code }) => code === 'client_left')).toHaveLength(left), {
    interval: 1,
    timeout: 4000,
  });

/** How many upstream calls the gateway has tried for its last request, those that found no connection included. */
export const attemptsOf = ({ gateway }: Pick<TimedWorld, 'gateway'>): unknown => gateway.lines.at(-1)?.upstream_calls;
