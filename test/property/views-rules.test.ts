import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { playDirected, type Rule, RULES } from './views-directed.ts';
import { Databases } from './views-redis.ts';
import { type Change, modulesWith } from './views-rules.ts';
import { playIn, run, WINDOW_MS } from './views-run.ts';

/** What holds for every read. Without it random schedules soon fail. */
const OF_EVERY_READ: Readonly<Record<string, readonly Change[]>> = {
  'a copy is of the version that the store says': [
    { file: 'store/shared/keys.ts', from: 'own?.version === version', to: 'own' },
  ],
  'a write says what it changes': [
    {
      file: 'store/shared/sealer.ts',
      from: 'tags: await this.namesOf(tags),\n      purchase',
      to: 'tags: [],\n      purchase',
    },
  ],
  'a session is over for all when one has ended it': [
    { file: 'store/shared/sessions.ts', from: 'reply.isRevoked || own.isRevoked,', to: 'own.isRevoked,' },
    { file: 'store/shared/sessions.ts', from: '(reply.isRevoked && !own.isRevoked)', to: 'false' },
  ],
  'requests are counted together': [{ file: 'store/shared/engine.ts', from: 'used: used - advance', to: 'used: 1' }],
};

/** What stands for each rule in the code, and what stands there where it is taken out. */
const OF_VIEWS: Readonly<Record<Rule, readonly Change[]>> = {
  wait: [{ file: 'store/shared.ts', from: 'isHeld && untilKnown(clock, clock.now() - announcedAt)', to: '' }],
  'sign-out': [
    {
      file: 'store/shared/sessions.ts',
      from: 'if (isKnown && this.#engine.changes) await untilKnown(this.#clock, 0)',
      to: '',
    },
  ],
  replay: [{ file: 'store/shared.ts', from: 'await untilKnown(clock, begun.sinceMs)', to: 'await undefined' }],
  sent: [
    {
      file: 'store/shared/changes.ts',
      from: '#heard) {\n      this.#extend(sent)',
      to: '#heard) {\n      this.#extend(this.sent())',
    },
  ],
  heard: [{ file: 'store/shared/changes.ts', from: 'if (number <= this.#heard) {', to: 'if (number > 0) {' }],
  gap: [{ file: 'store/shared/changes.ts', from: 'if (number > this.#heard + 1) {', to: 'if (number < 0) {' }],
  base: [{ file: 'store/shared/changes.ts', from: 'Math.max(this.#base, this.#forgotten)', to: 'this.#forgotten' }],
  passed: [
    { file: 'store/shared/changes.ts', from: 'isKnown && number >= (this.#changed.get(account) ?? 0)', to: 'isKnown' },
  ],
  refused: [], // the primary is told that it needs none
  token: [
    {
      file: 'store/shared/changes.ts',
      from: 'if (token !== this.#token) {\n      this.#begin',
      to: 'if (this.#token === undefined) {\n      this.#begin',
    },
    { file: 'store/shared/changes.ts', from: 'token === this.#token && ', to: '' },
  ],
  silence: [
    {
      file: 'entry/node/redis/engine.ts',
      from: 'if (this.#hasReplicas && this.#silence() >= SILENCE_MS) {',
      to: 'if (this.#silence() < 0) {',
    },
  ],
};

/** That a primary without its replica answers no question is its own rule. */
const NO_REPLICAS = 'refused';

/** Most that are tried; each finds one in far fewer. */
const SCHEDULES = 200;
/** A busy machine may let a lease end before its time. */
const TRIES = 10;

const isEnough = ({ length }: readonly unknown[]) => length > 0;

describe.skipIf(!hasRedis).concurrent(`schedules can fail${SKIPPED}`, () => {
  let databases: Databases;

  beforeAll(async () => {
    databases = await Databases.open(WINDOW_MS);
  });
  afterAll(() => databases?.close());

  test.each(Object.entries(OF_EVERY_READ))('without this: %s', async (_, changes) => {
    await using modules = await modulesWith(changes);
    const ran = await run({ first: 1, count: SCHEDULES, atOnce: 4, play: playIn(databases, { modules }), isEnough });
    expect(ran.failed).not.toEqual([]);
  });

  test.each(RULES)('none does where it is kept: %s', async (rule) => {
    expect((await playDirected(rule, { databases })).violations).toEqual([]);
  });

  test.each(RULES)('without this rule of views: %s', async (rule) => {
    await using modules = await modulesWith(OF_VIEWS[rule]);
    const leastReplicas = rule === NO_REPLICAS ? 0 : 1;
    const ran = await run({
      first: 1,
      count: TRIES,
      atOnce: 1,
      play: () => playDirected(rule, { databases, modules, leastReplicas }),
      isEnough,
    });
    expect(ran.failed).not.toEqual([]);
  });

  test('what is not found cannot be taken out', async () => {
    const gone = [{ file: 'store/shared/keys.ts', from: 'no such text', to: '' }];
    await expect(modulesWith(gone)).rejects.toThrow('0 times, not once');
  });
});
