import { describe, expect, test } from 'vitest';
import { ERROR_CODES, REASONS } from '../../src/core/errors.ts';
import { SECTION_STATES, STATUS_CLASSES } from '../../src/core/metrics.ts';
import { PHASES } from '../../src/core/timeline.ts';
import { barrier, hold, json, reply } from '../support/scripted-upstream.ts';
import { allOperations, allOverviews } from '../support/account-api.ts';
import { watchedClock } from '../support/clock.ts';
import { exampleInput } from '../support/examples.ts';
import { secret } from '../support/secrets.ts';
import { CALLS, type Measured, openMeasured } from './helpers.ts';

const ID = 'getSubscription';
const { path: PATH } = exampleInput(ID);
const ANSWERS = 'portico_answers_total';
const SAVED = 'portico_saved_total';

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

  test('each section of overviews with each state', async () => {
    const stage = await openMeasured();
    const sections = [...new Set(allOverviews.flatMap((one) => Object.keys(one.sections)))];
    const expected = product(sections, SECTION_STATES);
    expect(await pairsOf(stage, 'portico_sections_total', ['section', 'state'])).toEqual(expected);
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

  test('each code of a problem, each phase, and what clients saw by what the upstream did', async () => {
    const stage = await openMeasured();
    const { samples } = await stage.scrape();
    const valuesOf = (metric: string, label: string) =>
      samples.filter(({ name }) => name === metric).map(({ labels, value }) => `${labels[label]} ${value}`);
    expect(valuesOf('portico_problems_total', 'code')).toEqual(zeros([...ERROR_CODES, '(upstream)']));
    expect(valuesOf('portico_phase_seconds_count', 'phase')).toEqual(zeros(PHASES));
    expect(valuesOf(SAVED, 'by')).toEqual(zeros(['stale_copy', 'retry', 'joined']));
    const seen = ['good', 'refused', 'failed'];
    const expected = product(seen, ['not_asked', 'joined', 'good', 'failed']);
    expect(await pairsOf(stage, ANSWERS, ['client', 'upstream'])).toEqual(expected);
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

/** What has been counted since the start: pairs of what a client saw and the upstream did, and what was saved. */
async function countedBy({ scrape }: Measured): Promise<Readonly<Record<string, number>>> {
  const { samples } = await scrape();
  const counted = samples.filter(({ name, value }) => [ANSWERS, SAVED].includes(name) && value > 0);
  return Object.fromEntries(
    counted.map(({ labels, value }) => [labels['by'] ?? `${labels['client']}, upstream ${labels['upstream']}`, value]),
  );
}

describe('what clients saw and what the upstream did', () => {
  test('is good and good for a call, good and not asked for a copy', async () => {
    const stage = await openMeasured();
    await stage.ask(ID);
    await stage.ask(ID);
    expect(await countedBy(stage)).toEqual({ 'good, upstream good': 1, 'good, upstream not_asked': 1 });
  });

  test('is refused where the upstream or the gateway refuses', async () => {
    const stage = await openMeasured();
    stage.upstream.on(`GET ${PATH}`, json(404, '{"detail":"Not found."}'));
    await stage.ask(ID);
    await stage.ask(ID, { headers: { Authorization: 'none' } });
    expect(await countedBy(stage)).toEqual({ 'refused, upstream good': 1, 'refused, upstream not_asked': 1 });
  });

  test('is failed and failed where there is no copy, and no more than that', async () => {
    const stage = await openMeasured();
    stage.upstream.on(`GET ${PATH}`, json(500, '{}'));
    await stage.ask(ID);
    expect(await countedBy(stage)).toEqual({ 'failed, upstream failed': 1 });
  });

  test('is good and failed where a second attempt saved it', async () => {
    const stage = await openMeasured();
    stage.upstream.once(`GET ${PATH}`, json(503, '{}'));
    await stage.ask(ID);
    expect(await countedBy(stage)).toEqual({ 'good, upstream failed': 1, retry: 1 });
  });

  test('is good and failed where an older copy saved it', async () => {
    const stage = await openMeasured();
    await stage.ask(ID);
    stage.upstream.on(`GET ${PATH}`, json(500, '{}'));
    stage.clock.advance(331_000);
    expect((await stage.ask(ID)).status).toBe(200);
    expect(await countedBy(stage)).toEqual({ 'good, upstream good': 1, 'good, upstream failed': 1, stale_copy: 1 });
  });

  test('is good and not asked for a stale copy, whatever comes of the refresh behind it', async () => {
    const stage = await openMeasured();
    await stage.ask(ID);
    stage.clock.advance(31_000);
    stage.upstream.on(`GET ${PATH}`, json(500, '{}'));
    expect((await stage.ask(ID)).headers['cache-status']).toMatch(/ttl=-/);
    await stage.upstream.waitForCalls(2);
    expect(await countedBy(stage)).toEqual({ 'good, upstream good': 1, 'good, upstream not_asked': 1 });
  });

  test('is good and joined for those who share a call', async () => {
    const clock = watchedClock();
    const stage = await openMeasured({}, { clock });
    const gate = barrier();
    stage.upstream.on(`GET ${PATH}`, reply(hold(gate), json(200, '{}')));
    const asked = Array.from({ length: 3 }, () => stage.ask(ID));
    await Promise.all([stage.upstream.waitForCalls(1), clock.waits((ms) => ms === 10_000, 3)]);
    gate.release();
    await Promise.all(asked);
    expect(await countedBy(stage)).toEqual({ 'good, upstream good': 1, 'good, upstream joined': 2, joined: 2 });
  });

  test('is failed and not asked while the circuit is open', async () => {
    const stage = await openMeasured();
    stage.upstream.on(`GET ${PATH}`, json(500, '{}'));
    for (let times = 0; times < 20; times++) await stage.ask(ID, { token: secret() });
    await stage.ask(ID);
    expect(await countedBy(stage)).toEqual({ 'failed, upstream failed': 20, 'failed, upstream not_asked': 1 });
  });
});
