import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BoundedMap, Holdings } from '../../src/store/bounded.ts';

const mapOf = (max: number) => new BoundedMap<string, number>({ max, sizeOf: (size) => size });

describe('a full map', () => {
  test('takes from the owner with most', () => {
    const map = mapOf(1_000);
    map.set('a', 10, 'small');
    for (let n = 0; n < 1_000; n++) map.set(`b${n}`, 90, 'large');
    expect(map.peek('a')).toBe(10);
    expect([map.peek('b0'), map.peek('b999')]).toEqual([undefined, 90]);
  });

  test('takes from addresses before any account, and there from the one with most', () => {
    const map = mapOf(1_000);
    map.set('account', 500, 'account');
    map.set('first', 10, 'address 1');
    for (const key of ['x', 'y', 'z']) map.set(key, 100, 'address 2');
    map.set('more', 200, 'other');
    expect(['account', 'first', 'x', 'y'].map((key) => map.peek(key))).toEqual([500, 10, undefined, 100]);
    map.set('most', 400, 'other');
    expect(['account', 'first', 'y', 'z'].map((key) => map.peek(key))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('of small owners takes what was used least recently by any', () => {
    const map = new BoundedMap<string, number>({ max: 4_096 });
    for (let n = 0; n < 4_096; n++) map.set(`k${n}`, n, `owner ${n % 2_000}`);
    expect(map.get('k0')).toBe(0);
    map.set('new', 1, 'newcomer');
    expect([map.peek('k0'), map.peek('k1')]).toEqual([0, undefined]);
  });

  test('of one owner takes what it used least recently', () => {
    const map = mapOf(30);
    for (const key of ['a', 'b', 'c']) map.set(key, 10, 'one');
    map.get('a');
    map.set('d', 10, 'one');
    expect(['a', 'b', 'c', 'd'].map((key) => map.peek(key))).toEqual([10, undefined, 10, 10]);
  });

  test('takes from an account that was accepted meanwhile no more than from others', () => {
    const map = mapOf(100);
    map.set('known', 10, 'address 1');
    expect(map.get('known', 'known')).toBe(10);
    for (let n = 0; n < 100; n++) map.set(`s${n}`, 10, 'address 1');
    expect(map.peek('known')).toBe(10);
  });
});

const step = fc.record({
  do: fc.constantFrom('set', 'set', 'set', 'get', 'own', 'delete'),
  key: fc.integer({ min: 0, max: 30 }),
  size: fc.integer({ min: 1, max: 60 }),
  owner: fc.constantFrom('a', 'b', 'c', 'address 1', 'address 2'),
});

test('in every schedule it stays within its bound, and small owners lose nothing', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 200 }), fc.array(step, { maxLength: 100 }), (max, steps) => {
      const gone: string[] = [];
      const map = new BoundedMap<string, number>({ max, sizeOf: (size) => size, onGone: (_, key) => gone.push(key) });
      const model = new Map<string, { size: number; owner: string }>();
      const heldBy = (owner: string) =>
        [...model.values()].reduce((sum, one) => sum + (one.owner === owner ? one.size : 0), 0);
      for (const { do: what, key: n, size, owner } of steps) {
        const key = `k${n}`;
        if (what === 'set') {
          expect(map.set(key, size, owner)).toBe(size <= max);
          model.set(key, { size, owner });
          if (size > max) model.delete(key);
        }
        if (what === 'get') expect(map.get(key)).toBe(model.get(key)?.size);
        if (what === 'own') {
          map.get(key, owner);
          const known = model.get(key);
          if (known) model.set(key, { ...known, owner });
        }
        if (what === 'delete') {
          map.delete(key);
          model.delete(key);
        }
        for (const lost of gone.splice(0)) {
          const held = model.get(lost);
          model.delete(lost);
          if (!held || held.owner.startsWith('address') || lost === key) continue;
          // An account lost something: no address held anything, and no account one and a half times as much.
          const others = [...model].filter(([other]) => other !== key).map(([, one]) => one.owner);
          expect(others.filter((other) => other.startsWith('address'))).toEqual([]);
          const most = Math.max(0, ...others.map(heldBy));
          expect(heldBy(held.owner) + held.size).toBeGreaterThanOrEqual(most / 1.5);
        }
        expect(map.size).toBe(model.size);
        expect(map.held).toBe([...model.values()].reduce((sum, one) => sum + one.size, 0));
        expect(map.held).toBeLessThanOrEqual(max);
        for (const one of ['a', 'b', 'c', 'address 1', 'address 2']) {
          const keys = [...model].filter(([, entry]) => entry.owner === one).map(([name]) => name);
          expect([...map.keysOf(one)].toSorted()).toEqual(keys.toSorted());
        }
      }
    }),
    { numRuns: 500 },
  );
});

describe('what is not evicted', () => {
  test('an owner may have a part of the room that is left, so there is always some for others', () => {
    const holdings = new Holdings({ max: 1_600, part: 1 / 16 });
    const fill = (owner: string) => {
      let held = 0;
      for (; holdings.hasRoomFor(owner); held++) holdings.add(owner, 1);
      return held;
    };
    expect([fill('a'), fill('b')]).toEqual([95, 89]);
    for (let n = 0; n < 30; n++) expect(fill(`owner ${n}`)).toBeGreaterThan(0);
    holdings.add('a', -95);
    expect(fill('a')).toBeGreaterThan(10);
  });
});
