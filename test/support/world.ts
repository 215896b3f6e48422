import { afterEach, beforeEach, onTestFinished } from 'vitest';
import type { Deps } from '../../src/app.ts';
import type { Store } from '../../src/store/port.ts';
import type { OperationId } from './account-api.ts';
import type { Call } from './calls.ts';
import { clockOfDeadlines, LONGEST_PAUSE_MS, type ManualClock } from './clock.ts';
import { type Door, openDoor } from './door.ts';
import { exampleRequest } from './examples.ts';
import { startGateway, type TestGateway } from './gateway.ts';
import type { Hooks } from '../../src/upstream/hooks.ts';
import { call, type CallOptions, type TextAnswer } from './http.ts';
import { goodAnswer } from './marked.ts';
import { rawRequest, type RawResponse } from './raw-client.ts';
import { perCall, type ScriptedUpstream, startUpstream } from './scripted-upstream.ts';
import { secret } from './secrets.ts';
import { memoryStore, sharedStores } from './stores.ts';
import { type WatchedStore, watchedStore } from './watched-store.ts';

export type Env = Readonly<Record<string, string>>;

export interface Asking extends Partial<CallOptions> {
  /** `Idempotency-Key`. */
  readonly key?: string;
}

/** A gateway in this process, on real sockets, before an upstream that does what the test says. */
export interface World<C extends ManualClock = ManualClock> {
  readonly upstream: ScriptedUpstream;
  /** Between the two, where one was asked for. */
  readonly door: Door | undefined;
  readonly gateway: TestGateway;
  readonly clock: C;
  readonly store: WatchedStore;
  /** The account that asks unless another is named. */
  readonly token: string;
  readonly advance: (seconds: number) => void;
  /** The operation's example request. */
  readonly ask: (id: OperationId, options?: Asking) => Promise<TextAnswer>;
  /** A request with no more in it than is said. */
  readonly call: (options: CallOptions) => Promise<TextAnswer>;
  /** One request on a connection of its own, byte for byte. */
  readonly raw: (request: string | Uint8Array) => Promise<RawResponse>;
  /** Asks the admin listener. */
  readonly admin: (options: CallOptions) => Promise<TextAnswer>;
  /** From now on every call gets a good answer, marked with what `mark` says then, unless a script that is added later has one. */
  readonly answerAll: (mark?: (call: Call) => number | string) => void;
}

export type AtEnd = (close: () => Promise<void>) => void;

interface WorldOptions<C extends ManualClock> {
  /** Unless given, deadlines wait for `advance` and pauses pass by themselves. */
  readonly clock?: C;
  readonly store?: Store;
  readonly hooks?: Hooks;
  readonly compress?: Deps['compress'];
  readonly hasDoor?: boolean;
  /** With an admin listener, which tells of the store that the gateway makes itself. It then has no other. */
  readonly hasAdmin?: boolean;
  /** In the place of those of the account API. */
  readonly tables?: Partial<Pick<Deps, 'table' | 'overviews'>>;
  /** Path of the upstream's base URL. */
  readonly base?: string;
  /** In concurrent tests that test's own `onTestFinished`. */
  readonly atEnd?: AtEnd;
}

/** At the end of the test an upstream call that nobody expected fails it. */
export async function openWorld<C extends ManualClock = ManualClock>(
  env: Env = {},
  options: WorldOptions<C> = {},
): Promise<World<C>> {
  const { hasDoor = false, hasAdmin = false, base = '', atEnd = onTestFinished } = options;
  // Without one of its own `C` is what a manual clock is.
  const clock = options.clock ?? (clockOfDeadlines() as C);
  const store = watchedStore(options.store ?? (isShared ? sharedBy(clock) : memoryStore(clock)));
  const opened = new AsyncDisposableStack();
  atEnd(() => opened.disposeAsync());
  const upstream = await startUpstream();
  opened.defer(() => upstream.assertNoUnexpected());
  opened.defer(() => upstream.close());
  const door = hasDoor ? await openDoor(upstream.url) : undefined;
  opened.defer(() => door?.shut());
  const gateway = await startGateway((door ?? upstream).url + base, {
    env: { RATE_LIMIT_PER_MINUTE: '0', ...env },
    clock,
    admin: hasAdmin,
    ...options.tables,
    hooks: options.hooks,
    ...(options.compress && { compress: options.compress }),
    ...(!hasAdmin && { store }),
  });
  opened.defer(() => gateway.close());
  const token = secret();
  return {
    upstream,
    door,
    gateway,
    clock,
    store,
    token,
    advance: (seconds) => clock.advance(seconds * 1000),
    ask: (id, { key, headers, ...asking } = {}) =>
      call(gateway.url, {
        ...exampleRequest(id),
        token,
        ...asking,
        headers: { ...(key !== undefined && { 'Idempotency-Key': key }), ...headers },
      }),
    call: (request) => call(gateway.url, request),
    raw: (request) => rawRequest(gateway.port, request),
    admin: (request) => call(gateway.adminUrl ?? '', request),
    answerAll: (mark = () => 1) =>
      void upstream.on(
        () => true,
        perCall((to) => goodAnswer(to, mark(to))),
      ),
  };
}

/** The same tests hold for a gateway that shares its store. */
const isShared = process.env['OVER_SHARED_STORE'] === 'true';

/** Its short times wait for `advance` too: they are limits, and no pauses. */
const sharedBy = (clock: ManualClock): Store =>
  sharedStores({ ...clock, after: (ms, run) => clock.after(ms + LONGEST_PAUSE_MS, run) }).store;

type Used = Pick<World, 'upstream' | 'gateway' | 'advance' | 'call' | 'raw'>;

/** A new world for each test of the file or block. */
export function useWorld(env: Env = {}, options: Pick<WorldOptions<ManualClock>, 'base'> = {}): Used {
  let world: World;
  let close: (() => Promise<void>) | undefined;
  beforeEach(async () => {
    world = await openWorld(env, { ...options, atEnd: (end) => void (close = end) });
  });
  afterEach(async () => {
    await close?.();
    close = undefined;
  });
  return {
    get upstream() {
      return world.upstream;
    },
    get gateway() {
      return world.gateway;
    },
    advance: (seconds) => world.advance(seconds),
    call: (request) => world.call(request),
    raw: (request) => world.raw(request),
  };
}
