import { array, assert, integer, nat, property, record, string } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Recordings } from '../../src/entry/node/console/recorder.ts';
import { Ring } from '../../src/entry/node/console/ring.ts';
import { beginPhase } from '../../src/core/timeline.ts';

const text = string({ unit: 'grapheme', maxLength: 40 });

describe('a ring', () => {
  test('keeps the last texts, within its count and its bytes', () => {
    assert(
      property(array(text), integer({ min: 1, max: 20 }), integer({ min: 1, max: 400 }), (texts, most, max) => {
        const ring = new Ring(most, max);
        for (const one of texts) {
          ring.add(one);
          const kept = ring.since(0);
          const bytes = kept.reduce((sum, { length }) => sum + 2 * length, 0);
          expect(ring.bytes).toBe(bytes);
          expect(bytes).toBeLessThanOrEqual(max);
          expect(kept.length).toBeLessThanOrEqual(most);
        }
        const kept = ring.since(0);
        expect(kept).toEqual(texts.slice(texts.length - kept.length));
        expect(ring.added).toBe(texts.length);
        // No more has gone than had to.
        const before = texts.at(-kept.length - 1);
        if (kept.length < Math.min(most, texts.length))
          expect(ring.bytes + 2 * (before ?? '').length).toBeGreaterThan(max);
      }),
    );
  });

  test('tells each text once to whoever asks for what is new', () => {
    assert(
      property(array(array(text)), (rounds) => {
        const ring = new Ring(1000, 1_000_000);
        let seen = 0;
        for (const round of rounds) {
          for (const one of round) ring.add(one);
          expect(ring.since(seen)).toEqual(round);
          seen = ring.added;
        }
      }),
    );
  });
});

/** What of requests a client makes up, and how many phases they have. */
const requests = array(
  record({
    requestId: string({ maxLength: 300 }),
    code: string({ maxLength: 300 }),
    phases: nat(400),
    sections: array(string({ maxLength: 300 }), { maxLength: 60 }),
  }),
  { minLength: 1, maxLength: 20 },
);

test('what is kept of requests is at most 200 of them and 2 MB, whatever they were', () => {
  assert(
    property(requests, (made) => {
      const recordings = new Recordings();
      for (let count = 0; count < 250; count++) {
        const { requestId, code, phases, sections } = made[count % made.length]!;
        const request = { requestId, code, startedAt: 0, method: 'GET', route: { name: '/a' }, failed: sections };
        const rest = { account: undefined, cache: undefined, reason: undefined, fresh: sections, stale: undefined };
        const recorded = { ...request, ...rest };
        for (let phase = 0; phase < phases; phase++) beginPhase(recorded, 'attempt', phase, `${requestId}#${phase}`);
        recordings.noteworthy(recorded, { status: 500, endedAt: 1 });
      }
      const kept = recordings.ended.since(0);
      expect(kept.length).toBeGreaterThan(0);
      expect(kept.length).toBeLessThanOrEqual(200);
      expect(recordings.ended.bytes + recordings.unknownOutcomes.bytes).toBeLessThanOrEqual(2_000_000);
    }),
    { numRuns: 5 },
  );
});
