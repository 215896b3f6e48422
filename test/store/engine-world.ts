import { vi } from 'vitest';
import { storeAddressOf } from '../../src/entry/node/redis/address.ts';
import { RedisEngine } from '../../src/entry/node/redis/engine.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

export type OpenedEngine = Awaited<ReturnType<typeof openInstance>>;

/** How long a replaced store is not relied on in these tests, unless they set it. */
export const WINDOW_MS = 3_000;
/** Longer than it takes a busy machine to look at all that is so in a window. */
export const LONG_WINDOW_MS = 60_000;

/** An instance: an engine, and all that it has reported. */
export async function openInstance(url: string, windowMs = WINDOW_MS, settlingMs = 0) {
  const troubles = new Set<string>();
  const changes: boolean[] = [];
  const commands: string[] = [];
  const address = storeAddressOf(url);
  if (!address) throw new Error(`${url} is no address of a store`);
  const engine = await RedisEngine.open({
    address,
    windowMs,
    settlingMs,
    onCommand: (command, outcome, ms) => void commands.push(`${command} ${outcome} ${ms > 1_500}`),
    onChange: (isThere) => void changes.push(isThere),
    onTrouble: (reason) => void troubles.add(reason),
  });
  return { engine, isThere: () => engine.isThere, close: () => engine.close(), troubles, changes, commands };
}

/** Instances on one store, closed together with it. */
export class Instances {
  readonly #opened: OpenedEngine[] = [];

  async open(url: string, windowMs?: number): Promise<OpenedEngine> {
    const one = await openInstance(url, windowMs);
    this.#opened.push(one);
    return one;
  }

  close(): void {
    for (const one of this.#opened.splice(0)) one.close();
  }
}

/** Ends the time in which a replaced store is not relied on; call it when all instances have noticed. */
export async function passWindow(redis: TestRedis, ms = LONG_MS): Promise<void> {
  await vi.waitFor(
    () => redis.client.hget('portico:{0}:id', 'id').then((id) => id ?? Promise.reject(new Error('no id'))),
    {
      timeout: 10_000,
    },
  );
  await redis.pass(ms);
}

/** Longer than the window of any gateway that a test starts. */
const LONG_MS = 3_600_000;

/** A Redis that seems to have been up for long. */
export async function startOldRedis(settings?: Readonly<Record<string, string>>): Promise<TestRedis> {
  const redis = await startRedis(settings);
  const one = await openInstance(redis.url);
  await passWindow(redis);
  one.close();
  return redis;
}

export interface EngineWorld {
  readonly redis: TestRedis;
  open(windowMs?: number): Promise<OpenedEngine>;
  /** In another database, or as a user (`name:password@`). */
  openAt(db: number, user?: string): Promise<OpenedEngine>;
  close(): Promise<void>;
}

/** A Redis of its own, out of the window of its beginning, and instances on it. */
export async function engineWorld(settings?: Readonly<Record<string, string>>): Promise<EngineWorld> {
  const redis = await startRedis(settings);
  const instances = new Instances();
  return {
    redis,
    async open(windowMs) {
      const one = await instances.open(redis.url, windowMs);
      await passWindow(redis, windowMs ?? WINDOW_MS);
      return one;
    },
    openAt: (db, user = '') => instances.open(`${redis.url.replace('//', `//${user}`)}/${db}`),
    async close() {
      instances.close();
      await redis.close();
    },
  };
}

/** Resolves once the instance gets an answer. */
export const ready = async ({ engine }: OpenedEngine) => vi.waitFor(() => engine.snapshot('any', { keys: [] }), 45_000);
