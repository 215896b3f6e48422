import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import type { NewWrite, WriteEnd } from '../../src/store/store.ts';
import { ANSWER, DAY_MS, writeOf } from './writes.ts';

const NOW = Date.UTC(2026, 5, 9, 12);

/** Without `expect`, which takes its time when it is called a hundred thousand times. */
class Records {
  readonly store = new MemoryStore({ maxBytes: 1_048_576 });

  /** Takes the key, or returns its record. */
  async claim(write: NewWrite) {
    const { record, refusal } = await this.store.beginWrite(write);
    if (refusal) throw refusal;
    return record;
  }

  settle(write: NewWrite, end: WriteEnd): Promise<void> {
    return this.store.endWrite(write, end);
  }

  /** The code of the error that refuses it. */
  async refusalOf(write: NewWrite): Promise<string | undefined> {
    return (await this.store.beginWrite(write)).refusal?.code;
  }

  get count(): number {
    return this.store.usage().records;
  }

  /** Claims one after the other until the next is refused; returns how many there were. */
  async fill(of: (n: number) => NewWrite, end?: WriteEnd): Promise<number> {
    for (let n = 0; ; n += 1) {
      if ((await this.refusalOf(of(n))) !== undefined) return n;
      if (end !== undefined) await this.settle(of(n), end);
    }
  }
}

const inTime = { now: NOW, endsAt: NOW + 10_000, until: NOW + 70_000, tags: [] };

/** One of so many writes, by its number: the same one has the same nonce. */
const nth = (n: number, changes: Partial<NewWrite> = {}): NewWrite =>
  writeOf({ account: 'busy', key: `key-${n}`, nonce: `busy ${n}`, ...inTime, ...changes });

const neighbour = (n = 0) => writeOf({ account: `neighbour-${n}`, key: 'key', ...inTime });

/** The same write, so much later. */
const later = (write: NewWrite, ms: number): NewWrite => ({
  ...write,
  now: write.now + ms,
  endsAt: write.endsAt + ms,
  until: write.until + ms,
});

const UNAVAILABLE = 'store_unavailable';
const LARGE = { status: 200, text: 'x'.repeat(65_536) };

describe.each<readonly [string, WriteEnd | undefined]>([
  ['under way', undefined],
  ['of unknown outcome', 'unknown'],
  ['answered', ANSWER],
])('with as many records of an account as it may have, %s,', (_, end) => {
  test('its next key is refused, and leaves nothing behind', async () => {
    const records = new Records();
    const count = await records.fill(nth, end);
    expect(count).toBeGreaterThan(end === ANSWER ? 7_000 : 900); // others have marks, 1,000 at most
    for (let time = 0; time < 3; time += 1) expect(await records.refusalOf(nth(count))).toBe(UNAVAILABLE);
    expect(records.count).toBe(count);
    expect((await records.store.beginWrite(nth(count))).refusal?.particulars).toMatchObject({ retryAfter: 60 });
  });

  test('all of them are still known until their time is over', async () => {
    const records = new Records();
    const count = await records.fill(nth, end);
    for (let n = 0; n < 100; n += 1) await records.refusalOf(nth(count + n));
    const known = new Set<unknown>();
    for (let n = 0; n < count; n += 1)
      known.add((await records.claim(later({ ...nth(n), nonce: 'again' }, DAY_MS - 1)))?.outcome);
    expect([...known]).toEqual([end ?? 'unknown']);
  });

  test('no neighbour loses anything or is refused', async () => {
    const records = new Records();
    const before = neighbour();
    await records.claim(before);
    await records.settle(before, { status: 200, text: '"kept"' });
    await records.fill(nth, end);
    expect((await records.claim({ ...before, nonce: 'again' }))?.outcome).toEqual({ status: 200, text: '"kept"' });
    for (let n = 1; n < 100; n += 1) expect(await records.refusalOf(neighbour(n))).toBeUndefined();
  });
});

describe('one account', () => {
  test('with 100,000 keyed writes has the first ones for their day, and the others are refused', async () => {
    const records = new Records();
    let refused = 0;
    for (let n = 0; n < 100_000; n += 1) {
      if ((await records.refusalOf(nth(n, { isPurchase: true, fingerprint: `body ${n}` }))) === undefined)
        await records.settle(nth(n, { isPurchase: true, fingerprint: `body ${n}` }), ANSWER);
      else refused += 1;
    }
    expect(records.count).toBe(100_000 - refused);
    expect((await records.claim(nth(0, { nonce: 'again' })))?.outcome).toEqual(ANSWER);
  });

  test('has room again for what was released, and for what has expired', async () => {
    const records = new Records();
    const count = await records.fill(nth, ANSWER);
    await records.settle(nth(1), 'refused');
    expect(await records.refusalOf(nth(count))).toBeUndefined();
    expect(await records.refusalOf(nth(count + 1))).toBe(UNAVAILABLE);
    expect(await records.refusalOf(later(nth(count + 1), DAY_MS - 1))).toBe(UNAVAILABLE);
    expect(await records.refusalOf(later(nth(count + 1), DAY_MS))).toBeUndefined();
    expect(records.count).toBe(2); // that one, and one that is under way
  });

  test('takes no room from others where long answers come to many writes that were begun at once', async () => {
    const records = new Records();
    for (const account of ['busy', 'busier', 'busiest']) {
      const writes = Array.from({ length: 900 }, (_, n) => nth(n, { account, nonce: `${account} ${n}` }));
      for (const write of writes) await records.claim(write);
      for (const write of writes) await records.settle(write, LARGE);
      expect((await records.claim({ ...writes[0]!, nonce: 'again' }))?.outcome).toEqual(LARGE);
      expect((await records.claim({ ...writes[899]!, nonce: 'again' }))?.outcome).toBe('unknown');
    }
    for (let n = 0; n < 100; n += 1) expect(await records.refusalOf(neighbour(n))).toBeUndefined();
  });

  test('has room for the answers that are longest, each of which is kept', async () => {
    const records = new Records();
    const count = await records.fill(nth, LARGE);
    expect(count).toBeGreaterThan(50);
    for (let n = 0; n < count; n += 1)
      expect((await records.claim(nth(n, { nonce: 'again' })))?.outcome).toEqual(LARGE);
  });
});

describe('a record', () => {
  test('of a write under way does not expire, however long that takes', async () => {
    const records = new Records();
    await records.claim(nth(0));
    expect((await records.claim(later(nth(0, { nonce: 'again' }), 1_000 * DAY_MS)))?.outcome).toBe('unknown');
    await records.settle(nth(0), ANSWER);
    expect((await records.claim(nth(0, { nonce: 'again' })))?.outcome).toEqual(ANSWER);
  });

  test('is gone after its day, and its key can be taken again', async () => {
    const records = new Records();
    await records.claim(nth(0));
    await records.settle(nth(0), ANSWER);
    const again = later(nth(0, { nonce: 'again' }), DAY_MS);
    expect(await records.claim(again)).toBeUndefined();
    expect(await records.claim({ ...again, nonce: 'third' })).toMatchObject({ outcome: 'under_way' });
    await records.settle(nth(0), 'refused'); // of before
    expect(await records.claim({ ...again, nonce: 'third' })).toMatchObject({ outcome: 'under_way' });
    expect(records.count).toBe(1);
  });

  test('of an answer that is too long to keep says that the outcome is unknown', async () => {
    const records = new Records();
    await records.claim(nth(0));
    await records.settle(nth(0), { status: 200, text: `${LARGE.text}x` });
    expect((await records.claim(nth(0, { nonce: 'again' })))?.outcome).toBe('unknown');
  });

  test('takes no room once it is released or has expired', async () => {
    const records = new Records();
    const fills: number[] = [];
    for (let day = 0; day < 5; day += 1) {
      const of = (n: number) =>
        later(nth(n, { nonce: `${day} ${n}`, endsAt: Infinity, until: Infinity }), day * DAY_MS);
      fills.push(await records.fill(of));
      for (let n = 0; n < fills[0]!; n += 1)
        await records.settle(of(n), (['refused', 'not_sent', 'unknown'] as const)[n % 3]!);
      for (let n = 2; n < fills[0]!; n += 3) await records.settle(of(n), 'refused');
    }
    expect(new Set(fills).size).toBe(1);
    expect(records.count).toBe(0);
  });
});

const stranger = (n: number, address = 1) =>
  nth(n, { account: `stranger-${address}-${n}`, owner: `address 10.0.0.${address}` });

describe('credentials that the upstream has never accepted', () => {
  test('have no more together than their address may have, and nobody else pays for it', async () => {
    const records = new Records();
    const count = await records.fill(stranger, 'unknown');
    expect(count).toBeGreaterThan(1_500);
    expect(await records.refusalOf(stranger(count))).toBe(UNAVAILABLE);
    expect(await records.refusalOf(stranger(count, 2))).toBeUndefined();
    expect(await records.refusalOf(neighbour())).toBeUndefined();
  });

  test('of however many addresses leave all room of accounts', async () => {
    const alone = await new Records().fill(nth, ANSWER);
    const records = new Records();
    for (let address = 1; address < 200; address += 1) await records.fill((n) => stranger(n, address), 'unknown');
    expect(await records.fill(nth, ANSWER)).toBe(alone);
  });

  test('take what they had with them when they are accepted', async () => {
    const records = new Records();
    const count = await records.fill(stranger, ANSWER);
    for (let n = 0; n < count; n += 1) records.store.accept(`stranger-1-${n}`);
    expect(records.count).toBe(count);
    expect(await records.fill((n) => stranger(count + n), ANSWER)).toBeGreaterThan(count * 0.99);
    expect((await records.claim({ ...stranger(0), nonce: 'again' }))?.outcome).toEqual(ANSWER);
  });
});
