import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FIRST_REV, NOTE } from '../../src/store/sealed.ts';
import { storeContract } from '../store/contract.ts';
import { copyOf, HOUR_MS, next, noteOf, objectRules, readerOf, SWEPT_MS } from '../store/object-rules.ts';
import { accountsOver } from '../support/object-storage.ts';
import { ObjectWorld } from './durable-object-world.ts';

let world: ObjectWorld;

beforeAll(async () => {
  world = await ObjectWorld.start();
});

afterAll(() => world.close());

const objectsOf = () => ({
  shelf: world,
  pass,
  putAway: () => world.putAway(),
  kept: (account: string) => world.kept(account),
});

/** Time that has passed for instances and objects beside the machine's. */
let passedMs = 0;
const now = () => Date.now() + passedMs;

const clock = {
  now,
  wall: now,
  after(ms: number, run: () => void) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

const pass = async (ms: number) => {
  await world.pass(ms);
  passedMs += ms;
};

storeContract('the objects of accounts in workerd', () => ({
  instances: [accountsOver(world, clock), accountsOver(world, clock)],
  clock,
  pass,
}));

objectRules(async () => ({ objects: objectsOf(), account: randomUUID() }));

test('the alarm deletes what has expired, and with the last row all', async () => {
  const account = randomUUID();
  await world.keep(account, FIRST_REV, noteOf(FIRST_REV, 3 * HOUR_MS), copyOf('v', 1, '', HOUR_MS));
  const inMs = await world.alarmIn(account);
  expect([inMs! > HOUR_MS, inMs! <= HOUR_MS + SWEPT_MS]).toEqual([true, true]);
  await pass(inMs!);
  await world.ring(account);
  expect(await world.kept(account)).toEqual(['sealed note']);
  await pass((await world.alarmIn(account))!);
  await world.ring(account);
  expect([await world.tables(account), await world.alarmIn(account)]).toEqual([[], undefined]);
  expect(await world.swap(account, '', next('two'))).toBe('done');
});

test('a secret is made once, and outlives its process and alarms', async () => {
  const account = randomUUID();
  const secret = await world.secret(account);
  await world.ring(account);
  expect(world.complaints()).toEqual([]);
  await world.putAway();
  expect([await world.secret(account), await world.alarmIn(account)]).toEqual([secret, undefined]);
});

test('values as large as an answer may be are given back byte for byte', async () => {
  const account = randomUUID();
  const value = new Uint8Array(400_000).map((_, n) => n * n);
  await world.swap(account, '', { ...next('one'), record: { name: 'r:key', value, lifeMs: HOUR_MS } });
  const [note, record] = await readerOf(objectsOf(), account)(NOTE, 'r:key');
  expect([note, record === Buffer.from(value).toString('latin1')]).toEqual(['one......... its text', true]);
});

test('workerd has complained of nothing', () => expect(world.complaints()).toEqual([]));
