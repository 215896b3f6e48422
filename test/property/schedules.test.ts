import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Command, play } from './schedule.ts';
import type { Outcome } from './upstream.ts';
import { times } from '../support/counts.ts';

/** How many schedules; more for a night's run. */
const SCHEDULES = Number(process.env['SCHEDULES'] ?? times(2_000));

const READS = [
  '/api/v2/referral/config/',
  '/api/v2/subuser/5/',
  '/api/v2/subuser/05/',
  '/api/v2/subuser/6/',
  '/api/v2/subscription/',
  '/api/v2/payment/method/',
  '/api/v2/payment/method/7/',
  '/api/v2/payment/pending/44/',
  '/api/v2/payment/transaction/?page=1',
  '/api/v2/proxy/ipauthorization/7/',
];

const OVERVIEWS = ['/bff/v1/account-overview', '/bff/v1/billing-overview', '/bff/v1/referral-overview'];

const WRITES = [
  { method: 'PATCH', path: '/api/v2/referral/config/', body: '{"mode":"credits"}' },
  { method: 'DELETE', path: '/api/v2/payment/method/' },
  { method: 'POST', path: '/api/v2/subuser/5/refresh/' },
  { method: 'POST', path: '/api/v2/subuser/06/refresh/' },
  { method: 'POST', path: '/api/v2/proxy/list/refresh/' },
  { method: 'DELETE', path: '/api/v2/proxy/ipauthorization/7/' },
  { method: 'POST', path: '/api/v2/subscription/checkout/purchase/', body: '{}' },
];

const account = fc.constantFrom(0, 0, 0, 1);
const nth = fc.nat({ max: 5 });
const wants = fc.constantFrom('any', 'any', 'any', 'any', 'no-cache', 'no-store');
const outcome = fc.oneof<fc.WeightedArbitrary<Outcome>[]>(
  { weight: 12, arbitrary: fc.constant('good') },
  { weight: 5, arbitrary: fc.constantFrom('failed', 'html', 'broken', 'gone', 'limited') },
  { weight: 1, arbitrary: fc.constantFrom('unauthorized', 'forbidden') },
);

const read = (paths: readonly string[]): fc.Arbitrary<Command> =>
  fc.record({ do: fc.constant('read'), account, path: fc.constantFrom(...paths), wants });

const batch: fc.Arbitrary<Command> = fc.record({
  do: fc.constant('batch'),
  account,
  paths: fc.array(fc.constantFrom(...READS), { minLength: 1, maxLength: 4 }),
});

const write = fc
  .tuple(account, fc.constantFrom(...WRITES))
  .map(([by, what]): Command => ({ do: 'write', account: by, ...what }));

const seconds = fc.constantFrom(1, 4, 6, 11, 31, 100, 700);

const command = fc.oneof<fc.WeightedArbitrary<Command>[]>(
  { weight: 40, arbitrary: read(READS) },
  { weight: 5, arbitrary: read(OVERVIEWS) },
  { weight: 5, arbitrary: batch },
  { weight: 20, arbitrary: write },
  { weight: 50, arbitrary: fc.record({ do: fc.constant('end'), nth, outcome }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('leave'), nth }) },
  { weight: 15, arbitrary: fc.record({ do: fc.constant('wait'), seconds }) },
  { weight: 1, arbitrary: fc.constant({ do: 'flood' }) },
);

const schedule = fc.array(command, { minLength: 4, maxLength: 40, size: 'max' });

/** Little enough that a handful of answers push each other out, or room for all. */
const maxBytes = fc.constantFrom(3000, 1_048_576);

const keepsPromises = fc.asyncProperty(schedule, maxBytes, async (commands, bytes) => {
  expect(await play(commands, bytes)).toEqual([]);
});

test(
  'no read that starts after a write or a refusal was answered shows what was before it, and none what is another’s',
  () => fc.assert(keepsPromises, { numRuns: SCHEDULES }),
  120_000,
);
