import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import { MemoryRecords } from '../../src/store/memory/records.ts';
import type { NewWrite, WriteAnswer } from '../../src/store/store.ts';

import { DAY_MS, later, writeOf } from './writes.ts';

/** Records, asked with whole writes. */
class Records {
  readonly #records = new MemoryRecords();

  /** Takes the key, or returns its record. */
  claim(write: NewWrite) {
    const known = this.#records.peek(write);
    if (!known) this.#records.claim(write);
    return known;
  }

  settle(write: NewWrite, outcome: 'unknown' | WriteAnswer): void {
    this.#records.settle(write, outcome);
  }

  release(write: NewWrite): void {
    this.#records.release(write);
  }

  accept(account: string): void {
    this.#records.accept(account);
  }

  usage() {
    return this.#records.usage();
  }
}

const MAX_BYTES = 67_108_864;
const MEGABYTE = 1_048_576;

const NOW = Date.UTC(2026, 5, 9, 12);

const nth = (n: number, changes: Partial<NewWrite> = {}): NewWrite => {
  const account = `account-${n % 300}`;
  return writeOf({ principal: account, owner: account, key: `key-${n}`, now: NOW, ...changes });
};

/** Without `expect`, which takes its time when it is called a hundred thousand times. */
const claimFree = (records: Records, claim: NewWrite) => {
  if (records.claim(claim)) throw new Error(`${claim.key} is not free`);
};

const claimMany = (records: Records, count: number, from = 0) => {
  for (let n = from; n < from + count; n += 1) claimFree(records, nth(n));
};

/** What refuses the claim, if anything does. */
const refusalOf = (records: Records, claim: NewWrite): unknown => {
  try {
    return records.claim(claim);
  } catch (error) {
    return error;
  }
};

const expectRefusal = (refusal: unknown) => {
  expect(refusal).toBeInstanceOf(GatewayError);
  expect(refusal).toMatchObject({ code: 'store_unavailable', status: 503, particulars: { retryAfter: 60 } });
};

/** Claims one after the other until the next is refused; returns how many there were. */
const fillUp = (records: Records, of: (n: number) => NewWrite = nth): number => {
  for (let n = 0; ; n += 1) if (refusalOf(records, of(n)) !== undefined) return n;
};

describe('with as many writes under way or of unknown outcome as there may be', () => {
  test('another is refused, and leaves nothing behind', () => {
    const records = new Records();
    const count = fillUp(records);
    for (let time = 0; time < 3; time += 1) expectRefusal(refusalOf(records, nth(count)));
    expect(records.usage()).toEqual({ records: count, pinnedRecords: count });
    records.release(nth(count % 300));
    expect(records.claim(nth(count))).toBeUndefined();
  });

  test('all of them are still known', () => {
    const records = new Records();
    const count = fillUp(records);
    for (let n = 0; n < count; n += 2) records.settle(nth(n), 'unknown');
    for (let n = 0; n < 100; n += 1) expectRefusal(refusalOf(records, nth(count + n)));
    const outcomes = Array.from({ length: count }, (_, n) => records.claim(nth(n))?.outcome);
    expect(outcomes).toEqual(outcomes.map((_, n) => (n % 2 === 0 ? 'unknown' : 'under_way')));
  });

  test('there is room for an account without any', () => {
    const records = new Records();
    fillUp(records);
    for (let n = 0; n < 100; n += 1) {
      expect(records.claim(nth(n, { principal: `new-${n}`, owner: `new-${n}` }))).toBeUndefined();
    }
  });

  test('an answer makes room for one', () => {
    const records = new Records();
    const count = fillUp(records);
    records.settle(nth(count % 300), { status: 200, text: '1' });
    expect(records.claim(nth(count))).toBeUndefined();
    expectRefusal(refusalOf(records, nth(count + 300)));
  });

  test('those of unknown outcome make room after a day, in the time of the new write', () => {
    const records = new Records();
    const count = fillUp(records);
    for (let n = 0; n < 600; n += 1) records.settle(nth(n), 'unknown');
    const late = (ms: number) => later(nth(count), ms);
    expectRefusal(refusalOf(records, late(DAY_MS - 1)));
    records.settle(nth(count % 300), 'unknown');
    expect(records.usage().pinnedRecords).toBe(count);
    for (let n = 600; n < count; n += 1) records.settle(nth(n), 'unknown');
    expect(records.claim(late(DAY_MS))).toBeUndefined();
    expect(records.usage().pinnedRecords).toBe(1);
  });

  test('those under way never make room', () => {
    const records = new Records();
    const count = fillUp(records);
    expectRefusal(refusalOf(records, later(nth(count), 1000 * DAY_MS)));
    const known = Array.from({ length: count }, (_, n) => records.claim(later(nth(n), 1000 * DAY_MS)));
    expect(known).not.toContain(undefined);
  });

  test('a key can be taken again after its day', () => {
    const records = new Records();
    const count = fillUp(records);
    records.settle(nth(count % 300), 'unknown');
    expect(records.claim(later(nth(count % 300), DAY_MS))).toBeUndefined();
    expectRefusal(refusalOf(records, later(nth(count), DAY_MS)));
  });
});

const own = (n: number) => nth(n, { principal: 'busy', owner: 'busy' });

describe('of one account', () => {
  test('those that are not evicted take a part of the room; then its next write is refused, and no other', () => {
    const records = new Records();
    const count = fillUp(records, own);
    expect(count).toBeGreaterThan(1_000);
    for (let n = 0; n < count; n += 1) records.settle(own(n), 'unknown');
    expectRefusal(refusalOf(records, own(count)));
    claimFree(records, nth(0));
    expect(records.claim(own(0))?.outcome).toBe('unknown');
    expect(records.claim(later(own(count), DAY_MS))).toBeUndefined();
  });

  test('large answers push out its own, and none of another', () => {
    const records = new Records();
    answer(records, 0, 'of another');
    for (let n = 1; n < 3_000; n += 1) {
      claimFree(records, own(n));
      records.settle(own(n), { status: 200, text: 'x'.repeat(65_536) });
    }
    expect(records.claim(nth(0))?.outcome).toEqual({ status: 200, text: 'of another' });
    expect(records.claim(own(1))).toBeUndefined();
    expect(records.claim(own(2_999))?.outcome).toMatchObject({ status: 200 });
  });
});

const login = (n: number, address = '10.0.0.1') =>
  nth(n, { principal: `hash of ${address}`, owner: `address ${address}`, tags: [] });

describe('of an address', () => {
  test('20,000 of unknown outcome do not keep accounts from buying', () => {
    const records = new Records();
    for (let n = 0; n < 20_000; n += 1) {
      claimFree(records, login(n, `10.0.${n % 50}.1`));
      records.settle(login(n, `10.0.${n % 50}.1`), 'unknown');
    }
    expect(records.usage().pinnedRecords).toBe(0);
    claimFree(records, nth(0, { isPurchase: true }));
    expect(records.claim(login(19_999, '10.0.49.1'))?.outcome).toBe('unknown');
  });

  test('records go before those of any account', () => {
    const records = new Records();
    claimFree(records, login(0));
    records.settle(login(0), { status: 200, text: '1' });
    for (let n = 1; n < 1_100; n += 1) answer(records, n, 'x'.repeat(65_536));
    expect(records.claim(login(0))).toBeUndefined();
  });
});

/** Claims and settles with a text of its own. */
const answer = (records: Records, n: number, text: string) => {
  claimFree(records, nth(n));
  records.settle(nth(n), { status: 200, text });
};

const isKnown = (records: Records, n: number) => {
  const known = records.claim(nth(n)) !== undefined;
  if (!known) records.release(nth(n));
  return known;
};

const countKnown = (records: Records, count: number) =>
  Array.from({ length: count }, (_, n) => n).filter((n) => isKnown(records, n)).length;

describe('answers', () => {
  test.each([
    ['large', 200, 'x'.repeat(MEGABYTE), MEGABYTE],
    ['beyond Latin-1, of two bytes a character', 200, 'я'.repeat(MEGABYTE / 2), MEGABYTE],
    ['small', 150_000, '{"id":1}', 500],
  ])('that are %s stay within their bytes and come near them', (_, count, text, bytes) => {
    const records = new Records();
    for (let n = 0; n < count; n += 1) answer(records, n, text);
    const held = countKnown(records, count);
    expect(records.usage()).toEqual({ records: held, pinnedRecords: 0 });
    expect(held * bytes).toBeLessThanOrEqual(MAX_BYTES);
    expect(held * (bytes + 100)).toBeGreaterThan(MAX_BYTES * 0.8);
  });

  test('give way to newer ones, the oldest first', () => {
    const records = new Records();
    for (let n = 0; n < 100; n += 1) answer(records, n, 'x'.repeat(MEGABYTE));
    const known = Array.from({ length: 100 }, (_, n) => isKnown(records, n));
    expect(known.toSorted((one, other) => Number(one) - Number(other))).toEqual(known);
    expect([known[0], known[99]]).toEqual([false, true]);
  });

  test('never make those give way that are under way or of unknown outcome', () => {
    const records = new Records();
    claimMany(records, 2);
    records.settle(nth(1), 'unknown');
    for (let n = 2; n < 200; n += 1) answer(records, n, 'x'.repeat(MEGABYTE));
    expect(records.claim(nth(0))?.outcome).toBe('under_way');
    expect(records.claim(nth(1))?.outcome).toBe('unknown');
  });

  test('are no part of what may be under way at once', () => {
    const records = new Records();
    for (let n = 0; n < 40_000; n += 1) answer(records, n, '1');
    expect(records.usage()).toEqual({ records: 40_000, pinnedRecords: 0 });
    claimMany(records, 20_000, 40_000);
    expect(isKnown(records, 0)).toBe(true);
  });

  test('that are too large leave a record of unknown outcome', () => {
    const records = new Records();
    answer(records, 0, '1');
    expect(records.claim(nth(1))).toBeUndefined();
    records.settle(nth(1), { status: 200, text: 'x'.repeat(MAX_BYTES + 1) });
    expect(records.claim(nth(1))?.outcome).toBe('unknown');
    expect(records.claim(nth(0))?.outcome).toEqual({ status: 200, text: '1' });
    expect(records.usage()).toEqual({ records: 2, pinnedRecords: 1 });
  });
});

const busy = (n: number) => nth(n, { principal: 'busy', owner: 'busy', isPurchase: true });
const unaccepted = (n: number) => nth(n, { owner: 'address 10.0.0.1', isPurchase: true });

describe('the record of a purchase', () => {
  const purchase = nth(0, { principal: 'busy', owner: 'busy', key: 'purchase', isPurchase: true });
  const answered = { status: 200, text: '{"plan":4}' };

  test('is kept for a day, whatever its account and others write', () => {
    const records = new Records();
    claimFree(records, purchase);
    records.settle(purchase, answered);
    for (let n = 1; n < 3_000; n += 1) {
      claimFree(records, own(n));
      records.settle(own(n), { status: 200, text: '1' });
    }
    for (let n = 0; n < 100; n += 1) answer(records, n, 'x'.repeat(MEGABYTE));
    expect(records.claim(purchase)?.outcome).toEqual(answered);
    expect(records.claim(later(purchase, DAY_MS))).toBeUndefined();
  });

  test('with a large answer is of unknown outcome', () => {
    const records = new Records();
    claimFree(records, purchase);
    records.settle(purchase, { status: 200, text: 'x'.repeat(MEGABYTE) });
    expect(records.claim(purchase)?.outcome).toBe('unknown');
  });

  test('is one of those that leave no room for more', () => {
    const records = new Records();
    let bought = 0;
    for (; refusalOf(records, busy(bought)) === undefined; bought += 1) records.settle(busy(bought), answered);
    expect(bought).toBeGreaterThan(1_000);
    expect(records.usage().pinnedRecords).toBe(bought);
  });

  test('of a credential that was never accepted is its account’s once the upstream has answered', () => {
    const records = new Records();
    for (let n = 0; n < 10_000; n += 1) {
      claimFree(records, unaccepted(n));
      records.accept(unaccepted(n).principal);
      records.settle(unaccepted(n), answered);
    }
    expect(records.usage().pinnedRecords).toBe(10_000);
    expect(records.claim(unaccepted(0))?.outcome).toEqual(answered);
  });
});

test('what is released, or claimed again after its day, takes no room any more', () => {
  const records = new Records();
  for (let n = 0; n < 10; n += 1) {
    records.claim(nth(n));
    if (n % 2 === 0) records.release(nth(n));
    else records.settle(nth(n), { status: 200, text: '1' });
  }
  expect(records.usage()).toEqual({ records: 5, pinnedRecords: 0 });
  for (let n = 1; n < 10; n += 2) records.claim(later(nth(n), DAY_MS));
  expect(records.usage()).toEqual({ records: 5, pinnedRecords: 5 });
});
