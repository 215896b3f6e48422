import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ENDINGS, type EndingName } from './charges.ts';
import { ASKS } from './purchase-model.ts';
import { type Asking, type Command, playPurchases } from './purchase-schedule.ts';
import { times } from '../support/times.ts';

/** How many schedules; more for a night's run. */
const SCHEDULES = Number(process.env['PURCHASES'] ?? times(10_000));

const account = fc.constantFrom(0, 0, 0, 1);
/** Mostly the same one, since it is then that something can go wrong. */
const ask = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.nat({ max: ASKS.length - 1 }) },
);
const key = fc.constantFrom(0, 0, 0, 0, 1, undefined, undefined);
const isGone = fc.oneof({ weight: 12, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) });
const asking: fc.Arbitrary<Asking> = fc.record({ account, key, ask, print: fc.nat({ max: 2 }), isGone });

// The keys of a literal.
const endings = Object.keys(ENDINGS) as EndingName[];
const ending = fc.oneof(
  { weight: 1, arbitrary: fc.constant<EndingName>('good') },
  { weight: 2, arbitrary: fc.constantFrom(...endings) },
);

/** Less than a call may take, more, a hold, a minute, the day within which a key is kept and the moment it is over. */
const seconds = fc.constantFrom(1, 4, 5, 7, 7, 60, 3600, 86_394, 86_399, 86_400);

const command = fc.oneof<fc.WeightedArbitrary<Command>[]>(
  { weight: 10, arbitrary: asking.map((one) => ({ do: 'ask', asks: [one] })) },
  {
    weight: 3,
    arbitrary: fc.array(asking, { minLength: 2, maxLength: 3 }).map((asks) => ({ do: 'ask', asks })),
  },
  {
    weight: 9,
    arbitrary: fc.record({ do: fc.constant('end'), nth: fc.nat({ max: 5 }), ending, isCharged: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('leave'), nth: fc.nat({ max: 5 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait'), seconds }) },
);

const schedule = fc.array(command, { minLength: 2, maxLength: 12, size: 'max' });

const keepsPromises = fc.asyncProperty(schedule, async (commands) => {
  expect(await playPurchases(commands)).toEqual([]);
});

test('nobody is charged twice for one key, and every purchase gets the answer that the contract has for it', () =>
  fc.assert(keepsPromises, { numRuns: SCHEDULES }));
