import { beforeAll, describe, expect, test } from 'vitest';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { idOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { json, perCall } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { bodyOf, isOf } from '../support/versioned-upstream.ts';
import { ask, buyOnce, fleetOfFile, isHit, newOrder, prime, UNAVAILABLE } from './fleet.ts';

const MAX_MEMORY = 64 * 1_048_576;
const READ = 'listTransactions';
const PADDING = `,"padding":"${'x'.repeat(400_000)}"}`;

describe.skipIf(!hasRedis)(`one account that keeps all it can in the store${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let a: NodeGateway;
  let b: NodeGateway;

  beforeAll(async () => {
    [a, b] = await Promise.all([fleet().start(), fleet().start()]);
    await fleet().redis.client.config('SET', 'maxmemory', String(MAX_MEMORY));
  }, 30_000);

  /** The upstream's answers to this account are long. */
  const pad = (token: string) =>
    fleet().upstream.on(
      (to) => isOf(token, to),
      perCall((to) => json(to.method === 'POST' ? 201 : 200, bodyOf(idOf(to), 1).replace(/\}$/, PADDING))),
    );
  const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await fleet().redis.client.info('memory'))?.[1]);

  test('has no more keys for its purchases, and others buy', async () => {
    const token = secret();
    pad(token);
    const answers: string[] = [];
    for (let n = 0; n < 20 && !answers.includes(UNAVAILABLE); n++)
      answers.push((await buyOnce(a, { ...newOrder(), token })).slice(0, UNAVAILABLE.length));
    expect(answers.at(-1)).toBe(UNAVAILABLE);
    expect(await buyOnce(b, { ...newOrder(), token })).toBe(UNAVAILABLE);
    expect(await buyOnce(b, newOrder())).toMatch(/^201 /);
    expect(await usedMemory()).toBeLessThan(MAX_MEMORY / 4);
  });

  test('has no room for all of its copies, and those of others stay', async () => {
    const [token, other] = [secret(), secret()];
    await prime(a, READ, { token: other });
    pad(token);
    for (let n = 1; n <= 150; n++)
      expect((await ask(a, READ, { token, path: `/api/v2/payment/transaction/?page=${n}` })).status).toBe(200);
    expect(await usedMemory()).toBeLessThan(MAX_MEMORY / 4);
    const before = fleet().callsOf(other).length;
    expect(isHit(await ask(b, READ, { token: other }))).toBe(true);
    expect(fleet().callsOf(other)).toHaveLength(before);
  });
});
