import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { cacheStatusOf } from '../cache/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { PROTOCOL, TOKEN, USED_BY } from '../../src/entry/node/redis/scripts.ts';
import { hasRedis, relyOn, SKIPPED, startOldRedis, type TestRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import {
  ask,
  bought,
  buy,
  buyOnce,
  type Fleet,
  newOrder,
  openFleet,
  prime,
  UNAVAILABLE,
  untilNot,
  writeThrough,
} from './fleet.ts';
import { type Relay, startRelay } from './relay.ts';

const READS = 20;
const CONFIG = 'getReferralConfig';

const infoOf = async ({ client }: TestRedis) => client.info('replication');

const replicates = async (replica: TestRedis, primary: TestRedis) => {
  await replica.client.replicaof('127.0.0.1', primary.port);
  await vi.waitFor(async () => expect(await infoOf(replica)).toMatch('master_link_status:up'), 10_000);
};

describe.skipIf(!hasRedis)(`another store${SKIPPED}`, () => {
  let fleet: Fleet;
  let elsewhere: TestRedis;
  let relay: Relay;
  let a: NodeGateway;
  let b: NodeGateway;

  beforeEach(async () => {
    [fleet, elsewhere] = await Promise.all([openFleet(), startOldRedis()]);
    relay = await startRelay(fleet.redis.port);
  }, 30_000);

  afterEach(async () => {
    await fleet.close();
    await Promise.all([elsewhere.close(), relay.close()]);
  }, 30_000);

  const startBehindRelay = () => fleet.start({ STORE_URL: `redis://127.0.0.1:${relay.port}` });

  const primed = async () => {
    const token = secret();
    for (const at of [a, b]) await prime(at, CONFIG, { token });
    return token;
  };

  const expectVersion = async (token: string, version: number, times = READS) => {
    for (let n = 0; n < times; n++)
      expect(markOf((await ask(n % 2 === 0 ? a : b, CONFIG, { token })).text)).toBe(version);
  };

  test('is where the address leads for a while, and then back: no read is from before a write there', async () => {
    [a, b] = await Promise.all([startBehindRelay(), startBehindRelay()]);
    const token = await primed();
    relay.leadTo(elsewhere.port);
    await writeThrough(a, 'updateReferralConfig', { token });
    await expectVersion(token, 2, 4);
    relay.leadTo(fleet.redis.port);
    await expectVersion(token, 2);
    // In the window nothing is kept, and nothing is bought.
    expect(cacheStatusOf(await ask(a, CONFIG, { token }))).toBe('portico; fwd=miss');
    for (const at of [a, b]) expect(await buyOnce(at, newOrder())).toBe(UNAVAILABLE);
  });

  test('is where the address of one leads for a while: after that nothing from before its write is read', async () => {
    [a, b] = await Promise.all([startBehindRelay(), fleet.start()]);
    const token = await primed();
    relay.leadTo(elsewhere.port);
    await writeThrough(a, 'updateReferralConfig', { token });
    const known = () => fleet.redis.client.get(TOKEN);
    const before = await known();
    relay.leadTo(fleet.redis.port);
    await vi.waitFor(async () => expect(await known()).not.toBe(before), 10_000); // it has said what it saw
    await expectVersion(token, 2);
  });

  test('is one that gateways of another version use: it is none, which the log says, and reads go on', async () => {
    const use = () => elsewhere.client.hset(USED_BY, 'v', PROTOCOL - 1);
    await use();
    const using = setInterval(() => void use(), 100); // they look at it again and again
    onTestFinished(() => clearInterval(using));
    a = await fleet.start({ STORE_URL: elsewhere.url });
    await a.until(() => a.records().some(({ reason }) => reason === 'PROTOCOL') || undefined);
    const order = newOrder();
    expect(await buyOnce(a, order)).toBe(UNAVAILABLE);
    expect((await ask(a, CONFIG, { token: order.token })).status).toBe(200);
    expect(fleet.charges(order)).toBe(0);
  });

  test('is a primary that followed a promoted replica, and was promoted again: nothing old is read, and nothing sent twice', async () => {
    [a, b] = await Promise.all([fleet.start(), fleet.start()]);
    const token = await primed();
    const order = newOrder();
    await replicates(elsewhere, fleet.redis);
    await elsewhere.client.replicaof('NO', 'ONE');
    await elsewhere.client.flushall(); // it had not got all
    const promoted = await fleet.start({ STORE_URL: elsewhere.url });
    await writeThrough(promoted, 'updateReferralConfig', { token });
    await relyOn(elsewhere);
    expect(await buy(promoted, order)).toBe(bought(2));
    await replicates(fleet.redis, elsewhere);
    for (const at of [a, b]) expect(await buyOnce(at, order)).toBe(UNAVAILABLE);
    await fleet.redis.client.replicaof('NO', 'ONE');
    await expectVersion(token, 2);
    for (const at of [a, b])
      expect(await untilNot([UNAVAILABLE], () => buy(at, order))).toBe(bought(2, { isReplay: true }));
    expect(fleet.charges(order)).toBe(1);
  });
});
