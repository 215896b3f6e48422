import { describe, expect, test } from 'vitest';
import { ERROR_CODES, REASONS } from '../../src/core/errors.ts';
import { STATUS_CLASSES } from '../../src/core/metrics.ts';
import { PHASES } from '../../src/core/timeline.ts';
import { allOperations, allOverviews } from '../support/account-api.ts';
import { CALLS, type Measured, openMeasured } from './helpers.ts';

const ID = 'getSubscription';

/** The values of two labels of each series of a metric, in their order. */
async function pairsOf({ scrape }: Measured, name: string, [one, other]: readonly [string, string]): Promise<string[]> {
  const samples = (await scrape()).familyOf(name)?.samples ?? [];
  return samples.map(({ labels }) => `${labels[one]} ${labels[other]}`).toSorted();
}

const zeros = (values: readonly string[]) => values.map((value) => `${value} 0`);

const product = (firsts: readonly string[], seconds: readonly string[]) =>
  firsts.flatMap((first) => seconds.map((second) => `${first} ${second}`)).toSorted();

describe('from the first scrape on there is, with 0,', () => {
  test('each operation with each class of status', async () => {
    const stage = await openMeasured();
    const operations = [...allOperations, ...allOverviews].map(({ id }) => id);
    const expected = product([...operations, 'batch', 'getOutcome', '(none)'], STATUS_CLASSES);
    expect(await pairsOf(stage, 'portico_requests_total', ['operation', 'status'])).toEqual(expected);
    expect((await stage.scrape()).value('portico_requests_total')).toBe(0);
  });

  test('each operation of the upstream with each outcome, failures with each reason', async () => {
    const stage = await openMeasured();
    const operations = allOperations.map(({ id }) => id);
    expect(new Set(await pairsOf(stage, CALLS, ['operation', 'outcome']))).toEqual(
      new Set(product(operations, ['good', 'refused', 'failed', 'abandoned'])),
    );
    const { samples } = await stage.scrape();
    const failed = samples.filter(({ name, labels }) => name === CALLS && labels['outcome'] === 'failed');
    expect(failed.map(({ labels }) => `${labels['operation']} ${labels['reason']}`).toSorted()).toEqual(
      product(operations, ['', ...REASONS]),
    );
  });

  test('each code of a problem and each phase', async () => {
    const stage = await openMeasured();
    const { samples } = await stage.scrape();
    const valuesOf = (metric: string, label: string) =>
      samples.filter(({ name }) => name === metric).map(({ labels, value }) => `${labels[label]} ${value}`);
    expect(valuesOf('portico_problems_total', 'code')).toEqual(zeros([...ERROR_CODES, '(upstream)']));
    expect(valuesOf('portico_phase_seconds_count', 'phase')).toEqual(zeros(PHASES));
  });
});

test('probes and scrapes are counted nowhere, on neither listener', async () => {
  const stage = await openMeasured();
  await stage.ask(ID);
  const ours = async () => (await stage.scrape()).samples.filter(({ name }) => name.startsWith('portico_'));
  const before = await ours();
  for (const path of ['/livez', '/readyz']) {
    expect((await stage.call({ path })).status).toBe(200);
    expect((await stage.admin({ path })).status).toBe(200);
  }
  expect(await ours()).toEqual(before);
  await stage.ask(ID);
  expect(await ours()).not.toEqual(before);
});
