import { systemClock } from '../src/entry/node/deps.ts';
import { openRedisStore } from '../src/entry/node/redis/store.ts';
import { exampleBody } from '../test/support/examples.ts';
import type { Claim, Entry, Place, Store } from '../src/store/store.ts';
import { SECRET } from './fleet-gateways.ts';
import { type RedisServer, startRedis } from './fleet-redis.ts';

const MANY = 10_000;
const HOUR_MS = 3_600_000;
const text = exampleBody('getSubscription');
const bought = exampleBody('purchasePlan');

/** As long as the hash of a credential. */
const accountOf = (i: number) => String(i).padStart(43, 'a');

const placeOf = (i: number): Place => ({ account: accountOf(i), key: 'getSubscription/?', tags: ['subscription'] });

const visit = (store: Store, i: number) =>
  store.visit({
    account: accountOf(i),
    now: Date.now(),
    window: { name: 'requests by account', lengthMs: HOUR_MS },
    places: () => [placeOf(i)],
  });

async function save({ answers }: Store, i: number): Promise<void> {
  const [place, now] = [placeOf(i), Date.now()];
  const times = { askedAt: now, storedAt: now, expiresAt: now + HOUR_MS };
  const entry: Entry = { text, links: [], etag: '"gkBZHj7pLwokXMOf1nP0uAFIrsc"', ...times, validators: {} };
  if (!(await answers.save(place, entry, (await answers.lookup(place)).versions))) throw new Error('not saved');
}

async function buy({ records }: Store, i: number): Promise<void> {
  const now = Date.now();
  const ends = { now, endsAt: now + 10_000, expiresAt: now + 24 * HOUR_MS };
  const named = { account: accountOf(i), key: `key-${i}`, fingerprint: 'gkBZHj7pLwokXMOf1nP0uAFIrsc' };
  const claim: Claim = { ...named, ...ends, nonce: crypto.randomUUID(), lasting: true };
  await records.claim(claim);
  await records.begin(claim);
  await records.settle(claim, { status: 200, text: bought });
}

const size = (body: string) => `${Buffer.byteLength(body)} bytes`;

/** What Redis needs for ten thousand of each, names and expiries included. */
export async function benchStoreMemory(): Promise<void> {
  const redis = await startRedis(1);
  const options = {
    url: redis.url,
    secrets: [SECRET],
    maxBytes: 1e9,
    clock: systemClock,
    onChange: () => undefined,
    onTrouble: () => undefined,
    onLost: () => undefined,
  };
  const { store, close } = await openRedisStore(options);
  console.log(`\n| ${MANY} of each | bytes in Redis |\n| --- | --- |`);
  const rows = [
    ['account: its versions and its window', visit],
    [`cached answer of ${size(text)}`, save],
    [`record of a purchase, answer of ${size(bought)}`, buy],
  ] as const;
  for (const [name, make] of rows) console.log(`| ${name} | ${await bytesOf(redis, (i) => make(store, i))} |`);
  await close();
  await redis.stop();
}

async function bytesOf(redis: RedisServer, make: (i: number) => unknown): Promise<number> {
  await make(MANY); // the script is there
  const { memoryBytes: before } = await redis.counted();
  for (let i = 0; i < MANY; i += 100) await Promise.all(Array.from({ length: 100 }, (_, j) => make(i + j)));
  const { memoryBytes: after } = await redis.counted();
  return Math.round((after - before) / MANY);
}
