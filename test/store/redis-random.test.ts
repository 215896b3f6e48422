import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine, KeyReply } from '../../src/store/shared/engine.ts';
import type { WriteBegun } from '../../src/store/writes.ts';
import { EVERYTHING as ALL } from '../../src/store/store.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { ModelAccount } from './engine-model.ts';
import { type EngineWorld, engineWorld, WINDOW_MS } from './engine-world.ts';

const RUNS = process.env['CI'] === undefined ? 60 : 600;

const TAGS: Readonly<Record<string, readonly string[]>> = { k: ['a', 'b'], l: ['b'], m: [] };

const nonces = fc.constantFrom('n1', 'n2', 'n3');
const leases = fc.option(fc.constantFrom('l1', 'l2'), { nil: undefined });
const someTags = fc.subarray(['a', 'b'], { minLength: 1 });
const invalidated = fc.oneof({ weight: 5, arbitrary: someTags }, { weight: 1, arbitrary: fc.constant([ALL]) });
const purchases = fc.option(fc.constantFrom('p', 'q'), { nil: undefined });
const records = fc.option(
  fc.record({
    key: fc.constantFrom('r', 's'),
    value: fc.string().map((text) => Buffer.from(text)),
    lifeMs: fc.constant(200_000),
  }),
  { nil: undefined },
);
const windows = fc.option(fc.constant({ name: 'w', lengthMs: 60_000, limit: 12 }), { nil: undefined });

const keyNames = fc.constantFrom('k', 'l', 'm');
const saves = fc.record({
  key: keyNames,
  lease: leases,
  later: fc.constantFrom(-1, 0, 1),
  copy: fc.option(
    fc.record({
      value: fc.string({ minLength: 1 }).map((text) => Buffer.from(text)),
      freshMs: fc.constantFrom(0, 30_000),
      lifeMs: fc.constantFrom(20_000, 90_000),
    }),
    { nil: undefined },
  ),
  drop: fc.constantFrom(undefined, undefined, undefined, 'key' as const, 'everything' as const),
});
const steps = fc.oneof(
  fc.record({ is: fc.constant('pass' as const), ms: fc.constantFrom(4_900, 12_300, 41_700) }),
  fc.record({
    is: fc.constant('snapshot' as const),
    keys: fc.uniqueArray(
      fc.record({
        key: keyNames,
        lease: leases,
        waitedFor: leases,
        have: fc.option(fc.record({ later: fc.constantFrom(-1, 0, 1), isFresh: fc.boolean() })),
      }),
      { minLength: 1, maxLength: 3, selector: ({ key }) => key },
    ),
    window: windows,
  }),
  fc.record({ is: fc.constant('save' as const), saves: fc.array(saves, { minLength: 1, maxLength: 3 }) }),
  fc.record({
    is: fc.constant('begin' as const),
    write: fc.record({
      nonce: nonces,
      tags: invalidated,
      purchase: purchases,
      record: records,
      window: windows,
      busyMs: fc.constant(10_000),
      markMs: fc.constantFrom(25_000, 70_000),
    }),
  }),
  fc.record({
    is: fc.constant('end' as const),
    write: fc.record({
      nonce: nonces,
      tags: invalidated,
      purchase: purchases,
      record: records,
      end: fc.constantFrom('done' as const, 'refused' as const, 'unknown' as const, 'not_sent' as const),
      markMs: fc.constantFrom(15_000, 60_000),
      dropEverything: fc.boolean(),
      heldMs: fc.constantFrom(undefined, 20_000),
    }),
  }),
  fc.record({ is: fc.constant('change' as const), cooldownMs: fc.constantFrom(0, 8_000) }),
);
type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;

/** Plays the same on an engine and on the model. */
class Match {
  readonly #account = randomUUID();
  readonly #model = new ModelAccount();
  readonly #engine: Engine;
  readonly #pass: (ms: number) => Promise<void>;
  /** The last reply on a key, with the versions of both. */
  readonly #last = new Map<string, { engine: string; model: string; askedAt: number }>();
  /** Versions that are alike on one side are on the other. */
  readonly #alike = new Map<string, string>();

  constructor(engine: Engine, pass: (ms: number) => Promise<void>) {
    this.#engine = engine;
    this.#pass = pass;
  }

  async play(step: Step): Promise<void> {
    if (step.is === 'pass') {
      await this.#pass(step.ms);
      this.#model.pass(step.ms);
    } else if (step.is === 'snapshot') await this.#snapshot(step);
    else if (step.is === 'save') await this.#save(step);
    else if (step.is === 'begin') {
      const begun = await this.#engine.beginWrite(this.#account, step.write);
      expect(plain(begun)).toEqual(plain(this.#model.beginWrite(step.write)));
    } else if (step.is === 'end') {
      await this.#engine.endWrite(this.#account, step.write);
      this.#model.endWrite(step.write);
    } else {
      await this.#engine.change(this.#account, step);
      this.#model.change(step);
    }
  }

  async #snapshot({ keys, window }: Extract<Step, { is: 'snapshot' }>): Promise<void> {
    const asked = (side: 'engine' | 'model') =>
      keys.map(({ key, lease, waitedFor, have }) => {
        const last = this.#last.get(key);
        const known = have && last;
        const had = known && { version: last[side], askedAt: last.askedAt + have.later, isFresh: have.isFresh };
        return { key, tags: TAGS[key] ?? [], lease, waitedFor, ...(had && { have: had }) };
      });
    const {
      now,
      use,
      cooldownMs,
      keys: replies,
    } = await this.#engine.snapshot(this.#account, { keys: asked('engine'), window });
    const expected = this.#model.snapshot({ keys: asked('model'), window });
    expect([use?.used, cooldownMs > 0, replies.map(shape)]).toEqual([
      expected.used,
      expected.cooldown,
      expected.keys.map(shape),
    ]);
    for (const [i, { key }] of keys.entries()) {
      const [engine, model] = [replies[i]?.version, expected.keys[i]?.version];
      if (engine === undefined || model === undefined) continue;
      expect([this.#alike.get(engine) ?? model, this.#alike.get(`model ${model}`) ?? engine]).toEqual([model, engine]);
      this.#alike.set(engine, model).set(`model ${model}`, engine);
      this.#last.set(key, { engine, model, askedAt: now });
    }
  }

  /** At the same moment, which is as good as one after the other. */
  async #save({ saves: all }: Extract<Step, { is: 'save' }>): Promise<void> {
    const asked = all.map(({ key, lease, later, copy, drop }) => {
      const last = this.#last.get(key) ?? { engine: 'none', model: 'none', askedAt: 1_000 };
      return { last, save: { key, tags: TAGS[key] ?? [], lease, copy, drop, askedAt: last.askedAt + later } };
    });
    const saved = await Promise.all(
      asked.map(({ last, save }) => this.#engine.save(this.#account, { ...save, version: last.engine })),
    );
    expect(saved).toEqual(asked.map(({ last, save }) => this.#model.save({ ...save, version: last.model })));
  }
}

const shape = (reply: KeyReply | undefined) =>
  reply && [reply.lease, reply.copy?.askedAt, reply.copy?.value && String(reply.copy.value)];

const plain = (begun: WriteBegun) =>
  begun.is === 'record'
    ? [begun.is, String(begun.value), begun.isOver]
    : [begun.is, begun.is === 'equal' && begun.standing];

describe.skipIf(!hasRedis)(`whatever is asked${SKIPPED}`, () => {
  let world: EngineWorld;
  let engine: Engine;

  beforeAll(async () => {
    world = await engineWorld();
    ({ engine } = await world.open());
  });
  afterAll(() => world.close());

  it('is answered as by the plainest engine', async () => {
    const plays = fc.array(steps, { minLength: 5, maxLength: 60, size: 'max' });
    await fc.assert(
      fc.asyncProperty(plays, async (all) => {
        await world.redis.client.flushdb();
        await engine.snapshot('any', { keys: [] });
        await world.redis.pass(WINDOW_MS);
        const match = new Match(engine, (ms) => world.redis.pass(ms));
        for (const one of all) await match.play(one);
      }),
      { numRuns: RUNS },
    );
  });
});
