import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EVERYTHING, type Place, type Store, type Versions } from '../../src/store/store.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { PATIENT } from './engine.ts';
import { entryOf, heldIn, newAccount, placeIn } from './contract.ts';
import { ask, claimOf } from './records.ts';
import { type RedisWorld, redisWorld } from './redis-world.ts';

const instance = fc.nat({ max: 1 });
const slot = fc.nat({ max: 2 });
/** Each place has its group and its item; the last two share a group. */
const TAGS = [
  ['a', 'a/1'],
  ['b', 'b/1'],
  ['b', 'b/2'],
] as const;
const tag = fc.constantFrom('a', 'a/1', 'b', 'b/1', 'b/2', 'c', EVERYTHING);

const reading = fc.record({ does: fc.constant('note'), by: instance, slot });
const saving = fc.record({ does: fc.constant('save'), by: instance, slot, askedAt: fc.nat({ max: 3 }) });
const finding = fc.record({ does: fc.constant('find'), by: instance, slot });
const touching = fc.record({ does: fc.constant('touch'), by: instance, tag });
const dropping = fc.record({ does: fc.constant('drop'), by: instance, slot });

type Step<T> = T extends fc.Arbitrary<infer S> ? S : never;
type AnswerStep = Step<typeof reading | typeof saving | typeof finding | typeof touching | typeof dropping>;

const answerSteps = fc.array(fc.oneof(reading, saving, saving, finding, touching, dropping), {
  minLength: 5,
  maxLength: 30,
});

const verb = fc.constantFrom('claim', 'claim', 'begin', 'settle', 'unknown', 'release');
const recordSteps = fc.array(fc.record({ does: verb, by: instance, nonce: slot, key: slot }), {
  minLength: 5,
  maxLength: 30,
});

describe.skipIf(!hasRedis)(`whatever two instances on one Redis do${SKIPPED}`, PATIENT, () => {
  let world: RedisWorld;
  let stores: readonly Store[];

  beforeAll(async () => {
    world = await redisWorld();
    const { store, other } = await world.engine();
    stores = [store, other];
  });

  afterAll(() => world.close());

  /** What should be there, and what is. */
  class Answers {
    readonly #account = newAccount();
    readonly #places = TAGS.map((tags, n): Place => placeIn(this.#account, `key-${n}`, tags));
    /** By instance and slot: versions, and when in the model they were noted. */
    readonly #noted = new Map<string, { versions: Versions; at: number }>();
    readonly #touchedAt = [0, 0, 0];
    readonly #held = new Map<number, { text: string; askedAt: number }>();
    #time = 0;

    async run(step: AnswerStep): Promise<void> {
      this.#time += 1;
      const { answers } = stores[step.by]!;
      if ('tag' in step) {
        await answers.touch(this.#account, [step.tag]);
        TAGS.forEach((tags, n) => {
          if (step.tag === EVERYTHING || (tags as readonly string[]).includes(step.tag)) this.#forget(n);
        });
        return;
      }
      const place = this.#places[step.slot]!;
      if (step.does === 'drop') {
        await answers.drop(place);
        this.#forget(step.slot);
      } else if (step.does === 'note') {
        const { versions } = await answers.lookup(place);
        this.#noted.set(`${step.by} ${step.slot}`, { versions, at: this.#time });
      } else if ('askedAt' in step) await this.#save(step);
      else expect(await heldIn(answers, place)).toBe(this.#held.get(step.slot)?.text);
    }

    /** At the end both find what the model holds, and nothing else. */
    async check(): Promise<void> {
      for (const { answers } of stores)
        for (const [n, place] of this.#places.entries())
          expect(await heldIn(answers, place)).toBe(this.#held.get(n)?.text);
    }

    async #save({ by, slot: n, askedAt: ms }: Step<typeof saving>): Promise<void> {
      const noted = this.#noted.get(`${by} ${n}`);
      if (!noted) return;
      const text = `"${this.#time} by ${by}"`;
      // No two at the very same moment: of those either is as good as the other.
      const askedAt = 1_780_000_000_000 + ms + this.#time / 1000;
      const isNewer = askedAt > (this.#held.get(n)?.askedAt ?? 0);
      const isKept = noted.at > this.#touchedAt[n]! && isNewer;
      const entry = entryOf(text, { askedAt });
      expect(await stores[by]!.answers.save(this.#places[n]!, entry, noted.versions)).toBe(isKept);
      if (isKept) this.#held.set(n, { text, askedAt });
    }

    #forget(n: number): void {
      this.#touchedAt[n] = this.#time;
      this.#held.delete(n);
    }
  }

  test('nothing read before a touch is found after it, and all else is', async () => {
    const property = fc.asyncProperty(answerSteps, async (steps) => {
      const model = new Answers();
      for (const step of steps) await model.run(step);
      await model.check();
    });
    await expect(fc.assert(property, { numRuns: 150 })).resolves.toBeUndefined();
  });

  test('nothing read before a touch is found after it, also where steps overlap', async () => {
    const property = fc.asyncProperty(fc.array(instance, { minLength: 4, maxLength: 12 }), async (order) => {
      const place = placeIn(newAccount());
      const notes = await Promise.all(stores.map(async ({ answers }) => answers.lookup(place)));
      const save = async (by: number) => stores[by]!.answers.save(place, entryOf('"before"'), notes[by]!.versions);
      const touch = async (by: number) => stores[by]!.answers.touch(place.account, ['subusers']);
      await Promise.all(order.map<Promise<unknown>>((by, n) => (n % 3 === 1 ? touch(by) : save(by))));
      for (const { answers } of stores) expect(await heldIn(answers, place)).toBeUndefined();
    });
    await expect(fc.assert(property, { numRuns: 60 })).resolves.toBeUndefined();
  });

  test('a key is granted to one at a time, and to nobody once something may have been sent', async () => {
    const property = fc.asyncProperty(recordSteps, async (steps) => {
      const account = newAccount();
      const nonces = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()] as const;
      const model = new Map<number, { nonce: number; outcome: unknown }>();
      for (const { does, by, nonce, key } of steps) {
        const { records } = stores[by]!;
        const claim = claimOf({ account, key: `key-${key}`, nonce: nonces[nonce]!, fingerprint: `print-${nonce}` });
        const held = model.get(key);
        const isOwn = held?.nonce === nonce;
        const isFirst = isOwn && held.outcome === 'under_way';
        if (does === 'claim') {
          const known = held && { fingerprint: `print-${held.nonce}`, outcome: held.outcome };
          expect(await ask(records, claim)).toEqual(known);
          if (!held) model.set(key, { nonce, outcome: 'under_way' });
        } else if (does === 'begin' && (isFirst || !isOwn)) {
          const isBegun = await Promise.resolve(records.begin(claim)).then(
            () => true,
            () => false,
          );
          expect(isBegun).toBe(isOwn);
        } else if (does === 'release') {
          await records.release(claim);
          if (isOwn) model.delete(key);
        } else if (held && does !== 'begin') {
          const outcome = does === 'settle' ? { status: 200, text: String(nonce) } : 'unknown';
          await records.settle(claim, outcome);
          if (isOwn) model.set(key, { nonce, outcome });
        }
      }
    });
    await expect(fc.assert(property, { numRuns: 100 })).resolves.toBeUndefined();
  });

  test('a key that many want at once is granted once', async () => {
    const wants = fc.array(fc.record({ by: instance, key: slot }), { minLength: 2, maxLength: 30 });
    const property = fc.asyncProperty(wants, async (claims) => {
      const account = newAccount();
      const asked = claims.map(async ({ by, key }) => {
        const known = await stores[by]!.records.claim(claimOf({ account, key: `key-${key}` }));
        return known ? [] : [key];
      });
      const granted = (await Promise.all(asked)).flat();
      const wanted = new Set(claims.map(({ key }) => key));
      expect(granted).toHaveLength(wanted.size);
      expect(new Set(granted)).toEqual(wanted);
    });
    await expect(fc.assert(property, { numRuns: 100 })).resolves.toBeUndefined();
  });
});
