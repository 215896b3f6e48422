import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type OperationId, allOverviews } from '../support/account-api.ts';
import { type Command, play } from './schedule.ts';
import type { Outcome } from './upstream.ts';
import { times } from '../support/times.ts';
import { exampleRequest } from '../support/examples.ts';
import { pathOf } from '../support/marked.ts';
import { isSocial, partedBy, readIds, invalidatedReads, writeIds } from '../support/table.ts';

/** How many schedules; more for a night's run. */
const SCHEDULES = Number(process.env['SCHEDULES'] ?? times(2_000));

const ownIds = (ids: readonly OperationId[]) => ids.filter((id) => !isSocial(id));

type Write = Omit<Extract<Command, { do: 'write' }>, 'do' | 'account'>;

/** Every write of the table and the reads that show it; then one thing under two names. */
const THEMES: readonly { readonly write: Write; readonly shownIn: readonly string[] }[] = [
  ...ownIds(writeIds).map((id) => ({
    write: exampleRequest(id),
    shownIn: [...invalidatedReads(id), ...partedBy(id)].map(pathOf),
  })),
  {
    write: { method: 'POST', path: '/api/v2/subuser/05/refresh/' },
    shownIn: ['/api/v2/subuser/5/', '/api/v2/subuser/05/'],
  },
];

/** Every read of the table, and other forms of some. */
const READS = [
  ...ownIds(readIds).map(pathOf),
  '/api/v2/subuser/5/',
  '/api/v2/subuser/05/',
  '/api/v2/payment/method/7/',
  '/api/v2/payment/transaction/?page=1',
];

const OVERVIEWS = allOverviews.map(({ path }) => path);

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

const write = (writes: readonly Write[]): fc.Arbitrary<Command> =>
  fc.tuple(account, fc.constantFrom(...writes)).map(([by, what]): Command => ({ do: 'write', account: by, ...what }));

const seconds = fc.constantFrom(1, 4, 6, 11, 31, 100, 700);

/** Anything, and half of it about one write: of so many operations two that have to do with each other are rare. */
const commands = THEMES.map((theme) =>
  fc.oneof<fc.WeightedArbitrary<Command>[]>(
    { weight: 20, arbitrary: read(READS) },
    { weight: 20, arbitrary: read(theme.shownIn.length > 0 ? theme.shownIn : READS) },
    { weight: 5, arbitrary: read(OVERVIEWS) },
    { weight: 5, arbitrary: batch },
    { weight: 10, arbitrary: write(THEMES.map((one) => one.write)) },
    { weight: 10, arbitrary: write([theme.write]) },
    { weight: 50, arbitrary: fc.record({ do: fc.constant('end'), nth, outcome }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('leave'), nth }) },
    { weight: 15, arbitrary: fc.record({ do: fc.constant('wait'), seconds }) },
    { weight: 1, arbitrary: fc.constant({ do: 'flood' }) },
  ),
);

const schedule = fc.oneof(
  ...commands.map((command) => fc.array(command, { minLength: 4, maxLength: 40, size: 'max' })),
);

/** Little enough that a handful of answers push each other out, or room for all. */
const maxBytes = fc.constantFrom(3000, 1_048_576);

const keepsPromises = fc.asyncProperty(schedule, maxBytes, async (steps, bytes) => {
  expect(await play(steps, bytes)).toEqual([]);
});

test('no read that starts after a write or a refusal was answered shows what was before it, and none what is another’s', () =>
  fc.assert(keepsPromises, { numRuns: SCHEDULES }));
