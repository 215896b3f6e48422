import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import type { NewWrite, Place, Tag, WriteEnd } from '../../src/store/store.ts';
import { entryOf } from '../store/contract.ts';
import { times } from '../support/times.ts';

const PLACES: readonly Place[] = [
  { account: 'a', key: 'group', tags: ['g'] },
  { account: 'a', key: 'item', tags: ['g', 'g/1'] },
  { account: 'a', key: 'other', tags: ['s'] },
];

const place = fc.constantFrom(...PLACES);
const nth = fc.nat({ max: 5 });
const end = fc.constantFrom<WriteEnd>({ status: 200, text: null }, 'refused', 'unknown', 'not_sent', 'not_sent');
const step = fc.oneof(
  fc.record({ do: fc.constant('begin' as const), tags: fc.constantFrom<Tag[]>(['*'], ['g'], ['g/1'], ['g', 's']) }),
  fc.record({ do: fc.constant('end' as const), nth, end }),
  fc.record({ do: fc.constant('look' as const), place }),
  fc.record({ do: fc.constant('save' as const), nth }),
  fc.record({ do: fc.constant('drop' as const), place: fc.option(place) }),
);

const isTouched = (tags: readonly Tag[], { tags: own }: Place) => tags.some((tag) => tag === '*' || own.includes(tag));

/** Plays the steps, a millisecond apart; comes back with what was given or kept that should not have been. */
function play(steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[], maxBytes: number): string[] {
  const store = new MemoryStore({ maxBytes });
  const wrong: string[] = [];
  const underWay: NewWrite[] = [];
  const unknown: NewWrite[] = [];
  const reads: { readonly at: number; readonly of: Place; readonly versions: string }[] = [];
  /** Nothing that was asked for before this may be given. */
  const notBefore = new Map<Place, number>();
  const forbid = (tags: readonly Tag[], now: number) => {
    for (const one of PLACES.filter((each) => isTouched(tags, each))) notBefore.set(one, now);
  };
  const isMarked = (of: Place) => [...underWay, ...unknown].some(({ tags }) => isTouched(tags, of));

  for (const [now, one] of steps.entries()) {
    if (one.do === 'begin') {
      const write = { principal: 'a', tags: one.tags, nonce: String(now), now, endsAt: 1e6, until: 2e6 };
      underWay.push({ ...write, record: undefined, purchase: undefined });
      store.beginWrite(underWay.at(-1)!);
    } else if (one.do === 'end') {
      const [write] = underWay.splice(one.nth, 1);
      if (!write) continue;
      store.endWrite(write, one.end);
      if (one.end === 'unknown') unknown.push(write);
      if (one.end !== 'not_sent') forbid(write.tags, now);
    } else if (one.do === 'look') {
      const { entry, versions } = store.answers.lookup(one.place, now);
      reads.push({ at: now, of: one.place, versions });
      if (entry && isMarked(one.place)) wrong.push(`${one.place.key} was given under a mark`);
      if (entry && entry.askedAt < (notBefore.get(one.place) ?? 0)) wrong.push(`an old ${one.place.key} was given`);
    } else if (one.do === 'save') {
      const [read] = reads.splice(one.nth, 1);
      const isKept =
        read && store.answers.save(read.of, entryOf('1', { askedAt: read.at, storedAt: now }), read.versions);
      if (read && isKept && isMarked(read.of)) wrong.push(`${read.of.key} was kept under a mark`);
    } else if (one.place) {
      store.answers.drop(one.place);
      notBefore.set(one.place, now);
    } else {
      store.answers.touch('a', ['*']);
      forbid(['*'], now);
    }
  }
  return wrong;
}

test('whatever writes, reads and refusals do at once, nothing is given or kept under a mark, and nothing from before one', () => {
  const steps = fc.array(step, { minLength: 4, maxLength: 40, size: 'max' });
  const keeps = fc.property(steps, fc.constantFrom(3_000, 1_048_576), (played, maxBytes) => {
    expect(play(played, maxBytes)).toEqual([]);
  });
  fc.assert(keeps, { numRuns: times(20_000) });
});
