import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import type { CacheKey, Found, NewWrite, Snapshot, Store, Tag, WriteEnd } from '../../src/store/store.ts';
import { entryOf, keyIn } from '../store/contract.ts';

import { sharedWorld } from '../store/shared-world.ts';
import { writeOf } from '../store/writes.ts';
import { manualClock } from '../support/clock.ts';
import { times } from '../support/times.ts';

const KEYS: readonly CacheKey[] = [
  keyIn('a', 'group', ['g']),
  keyIn('a', 'item', ['g', 'g/1']),
  keyIn('a', 'other', ['s']),
];

const anyKey = fc.constantFrom(...KEYS);
const nth = fc.nat({ max: 5 });
const end = fc.constantFrom<WriteEnd>(
  { status: 200, text: null },
  'refused',
  'credential_refused',
  'unknown',
  'not_sent',
  'not_sent',
);
const step = fc.oneof(
  fc.record({ do: fc.constant('begin' as const), tags: fc.constantFrom<Tag[]>(['*'], ['g'], ['g/1'], ['g', 's']) }),
  fc.record({ do: fc.constant('end' as const), nth, end }),
  fc.record({ do: fc.constant('look' as const), key: anyKey }),
  fc.record({ do: fc.constant('save' as const), nth }),
  fc.record({ do: fc.constant('drop' as const), key: fc.option(anyKey) }),
);

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;
const schedules = fc.array(step, { minLength: 4, maxLength: 40, size: 'max' });

const isTouched = (tags: readonly Tag[], { tags: own }: CacheKey) =>
  tags.some((tag) => tag === '*' || own.includes(tag));

/** Plays the steps, a millisecond apart; comes back with what was given or kept that should not have been. */
async function play(steps: readonly Step[], store: Store): Promise<string[]> {
  const wrong: string[] = [];
  const underWay: NewWrite[] = [];
  const unknown: NewWrite[] = [];
  const reads: { readonly at: number; readonly key: CacheKey; readonly found: Found; readonly snapshot: Snapshot }[] =
    [];
  /** Nothing that was asked for before this may be given. */
  const notBefore = new Map<CacheKey, number>();
  const forbid = (tags: readonly Tag[], now: number) => {
    for (const one of KEYS.filter((each) => isTouched(tags, each))) notBefore.set(one, now);
  };
  const isMarked = (key: CacheKey) => [...underWay, ...unknown].some(({ tags }) => isTouched(tags, key));

  for (const [now, one] of steps.entries()) {
    if (one.do === 'begin') {
      const write = writeOf({ account: 'a', tags: one.tags, now, endsAt: 1e6, until: 2e6 });
      underWay.push(write);
      await store.beginWrite(write);
      continue;
    }
    if (one.do === 'end') {
      const [write] = underWay.splice(one.nth, 1);
      if (!write) continue;
      await store.endWrite(write, one.end);
      if (one.end === 'unknown') unknown.push(write);
      if (one.end !== 'not_sent') forbid(write.tags, now);
      if (one.end === 'credential_refused') forbid(['*'], now);
      continue;
    }
    const snapshot = await store.snapshot({
      account: 'a',
      owner: 'a',
      now,
      window: undefined,
      waitUntil: () => undefined,
    });
    if (one.do === 'look') {
      const found = await snapshot.lookup(one.key, now);
      const { entry } = found;
      reads.push({ at: now, key: one.key, found, snapshot });
      if (entry && isMarked(one.key)) wrong.push(`${one.key.key} was given under a mark`);
      if (entry && Number(entry.text) < (notBefore.get(one.key) ?? 0)) wrong.push(`an old ${one.key.key} was given`);
    } else if (one.do === 'save') {
      const [read] = reads.splice(one.nth, 1);
      const saved = await read?.snapshot.save(read.key, read.found, { entry: entryOf(String(read.at)) });
      if (read && saved?.stored && isMarked(read.key)) wrong.push(`${read.key.key} was kept under a mark`);
    } else {
      const key = one.key ?? KEYS[0]!;
      await snapshot.save(key, await snapshot.lookup(key, now), { drop: one.key ? 'key' : 'everything' });
      if (one.key) notBefore.set(key, now);
      else forbid(['*'], now);
    }
  }
  return wrong;
}

const NAME =
  'whatever writes, reads and refusals do at once, nothing is given or kept under a mark, and nothing from before one';

test(`in the process: ${NAME}`, async () => {
  const keeps = fc.asyncProperty(schedules, fc.constantFrom(3_000, 1_048_576), async (played, maxBytes) => {
    expect(await play(played, new MemoryStore({ maxBytes }))).toEqual([]);
  });
  await fc.assert(keeps, { numRuns: times(20_000) });
});

test(`over a shared store, through two instances: ${NAME}`, async () => {
  const keeps = fc.asyncProperty(schedules, async (played) => {
    const { store, other, engine } = sharedWorld({ clock: manualClock(0) });
    const turns = [store, other];
    let asked = 0;
    // Each step through the other one, a millisecond later.
    const both = new Proxy(store, {
      get: (_, name: Exclude<keyof Store, 'local'>) => {
        engine.pass(1);
        const one = turns[asked++ % 2]!;
        return (one[name] as (...args: unknown[]) => unknown).bind(one);
      },
    });
    expect(await play(played, both)).toEqual([]);
  });
  await fc.assert(keeps, { numRuns: times(600) });
});
