import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CacheKey, Entry, Found, NewWrite, Snapshot, Store, Tag, WriteEnd } from '../../src/store/port.ts';
import { keyIn } from '../store/contract.ts';
import { ANSWER, writeOf } from '../store/writes.ts';
import { type ManualClock, manualClock } from '../support/clock.ts';
import { memoryStore, sharedStores } from '../support/stores.ts';
import { times } from '../support/times.ts';

const KEYS: readonly CacheKey[] = [
  keyIn('a', 'group', ['g']),
  keyIn('a', 'item', ['g', 'g/1']),
  keyIn('a', 'other', ['s']),
];

const anyKey = fc.constantFrom(...KEYS);
const nth = fc.nat({ max: 5 });
const end = fc.constantFrom<WriteEnd>(ANSWER, 'refused', 'credential_refused', 'unknown', 'not_sent', 'not_sent');
const step = fc.oneof(
  fc.record({ do: fc.constant('begin' as const), tags: fc.constantFrom<Tag[]>(['*'], ['g'], ['g/1'], ['g', 's']) }),
  fc.record({ do: fc.constant('end' as const), nth, end }),
  fc.record({ do: fc.constant('look' as const), key: anyKey }),
  fc.record({ do: fc.constant('save' as const), nth }),
  fc.record({ do: fc.constant('drop' as const), key: fc.option(anyKey) }),
);

const entryOf = (text: string, storedAt: number): Entry => ({ text, links: [], etag: '', storedAt, validators: {} });

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;
const schedules = fc.array(step, { minLength: 4, maxLength: 40, size: 'max' });

const isTouched = (tags: readonly Tag[], { tags: own }: CacheKey) =>
  tags.some((tag) => tag === '*' || own.includes(tag));

/**
 * Plays the steps, a millisecond apart, each by one of the instances in turn; comes back with what was given that should
 * not have been, or kept by one that is the store itself.
 */
async function play(steps: readonly Step[], instances: readonly Store[], clock: ManualClock): Promise<string[]> {
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

  const behind: Promise<unknown>[] = [];
  const waitUntil = (work: Promise<unknown>) => void behind.push(work);

  for (const [now, one] of steps.entries()) {
    await Promise.all(behind.splice(0));
    clock.advance(1);
    const store = instances[now % instances.length]!;
    if (one.do === 'begin') {
      const write = writeOf({ account: 'a', tags: one.tags, now: clock.now(), endsAt: 1e6, until: 2e6 });
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
    const snapshot = await store.snapshot({ account: 'a', window: undefined, keys: KEYS, waitUntil });
    if (one.do === 'look') {
      const found = await snapshot.lookup(one.key);
      const { entry } = found;
      reads.push({ at: now, key: one.key, found, snapshot });
      if (entry && isMarked(one.key)) wrong.push(`${one.key.key} was given under a mark`);
      if (entry && Number(entry.text) < (notBefore.get(one.key) ?? 0)) wrong.push(`an old ${one.key.key} was given`);
    } else if (one.do === 'save') {
      const [read] = reads.splice(one.nth, 1);
      const saved = await read?.snapshot.save(read.key, read.found, { entry: entryOf(String(read.at), clock.now()) });
      if (read && saved?.stored && instances.length === 1 && isMarked(read.key))
        wrong.push(`${read.key.key} was kept under a mark`);
    } else {
      const key = one.key ?? KEYS[0]!;
      await snapshot.save(key, await snapshot.lookup(key), { drop: one.key ? 'key' : 'everything' });
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
    const clock = manualClock(0);
    expect(await play(played, [memoryStore(clock, maxBytes)], clock)).toEqual([]);
  });
  await fc.assert(keeps, { numRuns: times(20_000) });
});

test(`over a shared store, through two instances: ${NAME}`, async () => {
  const keeps = fc.asyncProperty(schedules, async (played) => {
    const clock = manualClock(0);
    const { store, other } = sharedStores(clock);
    expect(await play(played, [store, other], clock)).toEqual([]);
  });
  await fc.assert(keeps, { numRuns: times(2_000) });
});
