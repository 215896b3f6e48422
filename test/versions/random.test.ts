import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { ask, bought, buy, type Fleet, newOrder, type Order, writeThrough } from '../fleet/fleet.ts';
import { IN_PROGRESS } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { times } from '../support/times.ts';
import { mixedFleetOfFile, testNoComplaint } from './mixed-fleet.ts';

/** At once. */
const ACCOUNTS = 12;
const MOVES = 14;

const READS = ['getReferralConfig', 'getSubscription'] as const;
type Read = (typeof READS)[number];

type Move = (account: Account, instances: readonly NodeGateway[]) => Promise<void>;

/** What one account does through instances of both versions, and what it has been told. */
class Account {
  readonly #fleet: Fleet;
  readonly #token = secret();
  /** The least version that a read may give. */
  readonly #told = new Map<Read, number>();
  readonly #orders: { readonly order: Order; readonly version: number }[] = [];

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  async read(at: NodeGateway, id: Read): Promise<void> {
    const least = this.#told.get(id) ?? 1;
    const seen = Number(markOf((await ask(at, id, { token: this.#token })).text));
    expect(seen).toBeGreaterThanOrEqual(least);
    expect(seen).toBeLessThanOrEqual(this.#version);
  }

  async write(at: NodeGateway): Promise<void> {
    await writeThrough(at, 'updateReferralConfig', { token: this.#token });
    this.#told.set('getReferralConfig', this.#version);
  }

  /** The same through all of these at once. */
  async buy(...instances: readonly NodeGateway[]): Promise<void> {
    const order = { ...newOrder(), token: this.#token };
    const before = this.#version;
    const answers = await Promise.all(instances.map((at) => buy(at, order)));
    const version = before + 1;
    expect(answers.filter((answer) => answer === bought(version))).toHaveLength(1);
    for (const answer of answers)
      expect([bought(version), bought(version, { isReplay: true }), IN_PROGRESS]).toContain(answer);
    for (const id of READS) this.#told.set(id, version);
    this.#orders.push({ order, version });
  }

  async replayAll(at: NodeGateway): Promise<void> {
    for (const { order, version } of this.#orders) {
      expect(await buy(at, order)).toBe(bought(version, { isReplay: true }));
      expect(this.#fleet.charges(order)).toBe(1);
    }
  }

  get #version() {
    return this.#fleet.versionOf(this.#token);
  }
}

const place = fc.nat({ max: 3 });
const readOf = fc.constantFrom(...READS);
const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(place, readOf).map(
      ([n, id]): Move =>
        (one, at) =>
          one.read(at[n]!, id),
    ),
  },
  fc.constantFrom<Move>(
    async (one, at) => void (await Promise.all(at.map((each) => one.read(each, 'getReferralConfig')))),
  ),
  place.map(
    (n): Move =>
      (one, at) =>
        one.write(at[n]!),
  ),
  fc.tuple(place, place).map(([n, other]): Move => async (one, at) => {
    const reads = READS.map((id) => one.read(at[other]!, id));
    await Promise.all([one.write(at[n]!), ...reads]);
  }),
  place.map(
    (n): Move =>
      (one, at) =>
        one.buy(at[n]!),
  ),
  fc.constant<Move>((one, at) => one.buy(...at)),
  place.map(
    (n): Move =>
      (one, at) =>
        one.replayAll(at[n]!),
  ),
);

/** Each account makes its moves, one after the other, and tries at the end what it has bought. */
async function play(fleet: Fleet, instances: readonly NodeGateway[], movesOfEach: readonly (readonly Move[])[]) {
  const playOne = async (moves: readonly Move[]) => {
    const account = new Account(fleet);
    for (const one of moves) await one(account, instances);
    for (const at of instances) await account.replayAll(at);
  };
  await Promise.all(movesOfEach.map(playOne));
}

describe.skipIf(!hasRedis)(`random reads, writes and purchases through both versions${SKIPPED}`, () => {
  const mixed = mixedFleetOfFile();
  let instances: readonly NodeGateway[];

  beforeAll(async () => {
    const versions = ['this version', 'the last release', 'this version', 'the last release'] as const;
    instances = await Promise.all(versions.map((version) => mixed().start(version)));
  });

  test('give nothing old and charge once', async () => {
    const moves = fc.array(move, { minLength: MOVES, maxLength: MOVES });
    const movesOfEach = fc.array(moves, { minLength: ACCOUNTS, maxLength: ACCOUNTS });
    const playing = fc.asyncProperty(movesOfEach, (made) => play(mixed().fleet, instances, made));
    await fc.assert(playing, { numRuns: times(10), endOnFailure: true });
  });

  testNoComplaint(mixed);
});
