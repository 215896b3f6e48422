import { afterAll, beforeAll, describe } from 'vitest';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { answersContract } from './contract.ts';
import { PATIENT, type SharedEngine } from './engine.ts';
import { limitsContract } from './limits.ts';
import { recordsContract } from './records.ts';
import { type RedisWorld, redisWorld } from './redis-world.ts';
import { sharingContract } from './sharing.ts';
import { visitsContract } from './visits.ts';

describe.skipIf(!hasRedis)(`on Redis${SKIPPED}`, PATIENT, () => {
  let world: RedisWorld;
  let engine: SharedEngine;

  beforeAll(async () => {
    world = await redisWorld();
    engine = await world.engine();
  });

  afterAll(() => world.close());

  for (const contract of [answersContract, visitsContract, recordsContract, limitsContract, sharingContract])
    contract('the Redis store', () => engine);
});
