import { vi } from 'vitest';
import type { Clock } from '../../src/core/runtime.ts';
import { systemClock } from '../../src/entry/node/deps.ts';
import { openRedisStore } from '../../src/entry/node/redis/store.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { ENGINE_SLACK_MS, type SharedEngine } from './engine.ts';

export type OpenedStore = Awaited<ReturnType<typeof openRedisStore>>;

export const SECRET = 'the first secret, long enough to be one';

/** A Redis of its own, and instances of the gateway's store on it. */
export interface RedisWorld {
  /** What the instances have complained of. */
  readonly troubles: ReadonlySet<string>;
  readonly redis: TestRedis;
  open(secrets?: readonly string[], onChange?: (isThere: boolean) => void, clock?: Clock): Promise<OpenedStore>;
  /** Two instances. */
  engine(): Promise<SharedEngine>;
  close(): Promise<void>;
}

export async function redisWorld(): Promise<RedisWorld> {
  const redis = await startRedis();
  const opened: OpenedStore[] = [];
  const troubles = new Set<string>();
  const open = async (
    secrets: readonly string[] = [SECRET],
    onChange: (isThere: boolean) => void = () => undefined,
    clock: Clock = systemClock,
  ) => {
    const one = await openRedisStore({
      url: redis.url,
      secrets,
      maxBytes: 1_048_576,
      clock,
      onChange,
      onTrouble: (reason) => void troubles.add(reason),
      onLost: () => undefined,
    });
    opened.push(one);
    return one;
  };
  return {
    troubles,
    redis,
    open,
    async engine() {
      const [{ store }, { store: other }] = [await open(), await open()];
      // On a busy machine the engine may not have heard all yet, and would hear it later than it was said.
      const heard = () => vi.waitFor(() => Promise.all([store.tellAll(), other.tellAll()]), 5_000);
      return { store, other, pass: (ms) => heard().then(() => redis.pass(ms)), slackMs: ENGINE_SLACK_MS };
    },
    async close() {
      await Promise.all(opened.map((one) => one.close()));
      await redis.close();
    },
  };
}
