import { afterAll, beforeAll, describe } from 'vitest';
import { manualClock } from '../support/clock.ts';
import {
  hasRedis,
  type OpenedStore,
  openRedisStore,
  SKIPPED,
  startOldRedis,
  type TestRedis,
} from '../support/redis.ts';
import { storeContract } from './contract.ts';

describe.skipIf(!hasRedis)(`over Redis${SKIPPED}`, () => {
  const clock = manualClock();
  let redis: TestRedis;
  let opened: OpenedStore[] = [];

  beforeAll(async () => {
    redis = await startOldRedis();
    opened = await Promise.all([openRedisStore(redis.url, { clock }), openRedisStore(redis.url, { clock })]);
  });
  afterAll(async () => {
    for (const one of opened) one.close();
    await redis.close();
  });

  storeContract('the store of two instances', () => {
    const [one, other] = opened;
    if (!one || !other) throw new Error('they are not there yet');
    const pass = async (ms: number) => {
      clock.advance(ms);
      await redis.pass(ms);
    };
    return { instances: [one.store, other.store], clock, pass };
  });
});
