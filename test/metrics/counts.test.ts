import { describe, expect, test } from 'vitest';
import { expectProblem } from '../http/problem.ts';
import { CALLS, type Measured, openMeasured, READS, REQUESTS } from './helpers.ts';
import { subscriptionWith } from '../overviews/helpers.ts';
import { secret } from '../support/secrets.ts';
import { watchedClock } from '../support/clock.ts';
import { exampleInput } from '../support/examples.ts';
import { barrier, hang, hold, json, reply, reset } from '../support/scripted-upstream.ts';

const ID = 'getSubscription';
const { path: PATH } = exampleInput(ID);
const OVERVIEW = '/bff/v1/account-overview';

/** The counts of a counter by its outcomes, without zeros. */
const outcomesOf = async ({ scrape }: Measured, name: string): Promise<Readonly<Record<string, number>>> => {
  const samples = (await scrape()).familyOf(name)?.samples ?? [];
  const counted = samples.filter(({ value }) => value > 0);
  return Object.fromEntries(counted.map(({ labels, value }) => [labels['outcome'] ?? '', value]));
};

const readsOf = (stage: Measured) => outcomesOf(stage, READS);

describe('reads', () => {
  test('are counted by how the cache came to an answer', async () => {
    const stage = await openMeasured();
    await stage.ask(ID);
    await stage.ask(ID);
    stage.clock.advance(31_000);
    await stage.ask(ID);
    await stage.ask('getVerificationFlow');
    expect(await readsOf(stage)).toEqual({ miss: 1, hit: 1, stale: 1, bypass: 1 });
  });

  test('of a warm overview are counted one for each copy, none for a card that there is not', async () => {
    const stage = await openMeasured();
    stage.upstream.on(`GET ${PATH}`, json(200, subscriptionWith('null')));
    for (let times = 0; times < 2; times++) await stage.call({ path: OVERVIEW, token: stage.token });
    expect((await readsOf(stage))['hit']).toBe(3);
  });

  test('that join a call under way are counted as collapsed, and one read is seen under way', async () => {
    const clock = watchedClock();
    const stage = await openMeasured({}, { clock });
    const gate = barrier();
    stage.upstream.on(`GET ${PATH}`, reply(hold(gate), json(200, '{}')));
    const asked = Array.from({ length: 3 }, () => stage.ask(ID));
    await Promise.all([stage.upstream.waitForCalls(1), clock.waits((ms) => ms === 10_000, 3)]);
    const during = await stage.scrape();
    gate.release();
    await Promise.all(asked);
    expect(await readsOf(stage)).toEqual({ miss: 1, collapsed: 2 });
    const after = await stage.scrape();
    for (const gauge of ['portico_reads_under_way', 'portico_upstream_calls_under_way'])
      expect([during.value(gauge), after.value(gauge)]).toEqual([1, 0]);
  });

  test('of an overview count section by section, its request once', async () => {
    const stage = await openMeasured();
    await stage.call({ path: OVERVIEW, token: stage.token });
    const calls = stage.upstream.calls.length;
    const scraped = await stage.scrape();
    expect(scraped.value(REQUESTS)).toBe(1);
    expect(scraped.value(REQUESTS, { operation: 'getAccountOverview', status: '2xx' })).toBe(1);
    expect(scraped.value(CALLS, { outcome: 'good' })).toBe(calls);
    expect((await readsOf(stage))['miss']).toBe(calls);
  });

  test('leave bytes and entries', async () => {
    const stage = await openMeasured();
    await stage.ask(ID);
    await stage.ask('getReferralConfig');
    const scraped = await stage.scrape();
    expect(scraped.value('portico_cache_entries')).toBe(2);
    expect(scraped.value('portico_cache_bytes')).toBeGreaterThan(500);
    expect(scraped.value('portico_cache_bytes')).toBeLessThan(20_000);
  });
});

describe('requests', () => {
  test('are counted by operation, class of status and what the cache had', async () => {
    const stage = await openMeasured();
    const { headers } = await stage.ask(ID);
    await stage.ask(ID, { headers: { 'If-None-Match': headers['etag'] ?? '' } });
    stage.upstream.on(`GET ${exampleInput('getTransaction').path}`, json(404, '{"detail":"Not found."}'));
    await stage.ask('getTransaction');
    await stage.call({ path: '/nowhere' });
    const scraped = await stage.scrape();
    expect(scraped.value(REQUESTS)).toBe(4);
    expect(scraped.value(REQUESTS, { operation: ID, status: '2xx', cache: 'miss' })).toBe(1);
    expect(scraped.value(REQUESTS, { operation: ID, status: '3xx', cache: 'hit' })).toBe(1);
    expect(scraped.value(REQUESTS, { operation: 'getTransaction', status: '4xx' })).toBe(1);
    expect(scraped.value(REQUESTS, { operation: '(none)', status: '4xx' })).toBe(1);
  });

  test('are timed, in seconds and in buckets that count what is below them too', async () => {
    const stage = await openMeasured();
    const gate = barrier();
    stage.upstream.on(`GET ${PATH}`, reply(hold(gate), json(200, '{}')));
    const asked = stage.ask(ID);
    await stage.upstream.waitForCalls(1);
    stage.clock.advance(30);
    gate.release();
    await asked;
    await stage.ask(ID);
    const scraped = await stage.scrape();
    const below = (le: string) => scraped.value('portico_request_duration_seconds_bucket', { operation: ID, le });
    expect(['0.0005', '0.025', '0.05', '10', '+Inf'].map(below)).toEqual([1, 1, 2, 2, 2]);
    expect(scraped.value('portico_request_duration_seconds_sum', { operation: ID })).toBeCloseTo(0.03, 5);
    expect(scraped.value('portico_upstream_call_duration_seconds_sum', { operation: ID })).toBeCloseTo(0.03, 5);
    expect(scraped.value('portico_upstream_call_duration_seconds_count', { operation: ID })).toBe(1);
  });

  test('over the limit of an account are counted as refused', async () => {
    const stage = await openMeasured({ RATE_LIMIT_PER_MINUTE: '2' });
    for (let times = 0; times < 3; times++) await stage.ask(ID);
    const scraped = await stage.scrape();
    expect(scraped.value('portico_refused_total', { by: 'rate_limit' })).toBe(1);
  });
});

describe('upstream calls', () => {
  test('are counted by operation and outcome, those that were made again as retries too', async () => {
    const stage = await openMeasured();
    const { path } = exampleInput('getReferralConfig');
    stage.upstream.once(`GET ${path}`, json(503, '{}'));
    stage.upstream.once(`GET ${PATH}`, json(403, '{"detail":"no"}'));
    await stage.ask(ID);
    await stage.ask('getReferralConfig');
    const scraped = await stage.scrape();
    expect(scraped.value(CALLS, { operation: ID, outcome: 'refused' })).toBe(1);
    expect(scraped.value(CALLS, { operation: 'getReferralConfig', outcome: 'failed' })).toBe(1);
    expect(scraped.value(CALLS, { operation: 'getReferralConfig', outcome: 'good' })).toBe(1);
    expect(scraped.value(CALLS)).toBe(3);
    expect(scraped.value('portico_upstream_retries_total', { operation: 'getReferralConfig' })).toBe(1);
    expect(scraped.value('portico_upstream_retries_total')).toBe(1);
  });

  test('that nobody waited for any more are abandoned, and have no duration', async () => {
    const stage = await openMeasured();
    stage.upstream.on(`GET ${PATH}`, hang());
    const leaving = new AbortController();
    const asked = stage.ask(ID, { signal: leaving.signal });
    await stage.upstream.waitForCalls(1);
    leaving.abort();
    await expect(asked).rejects.toThrow();
    const abandoned = async () => (await stage.scrape()).value(CALLS, { outcome: 'abandoned' });
    await expect.poll(abandoned).toBe(1);
    expect((await stage.scrape()).value('portico_upstream_call_duration_seconds_count')).toBe(0);
  });

  test('that fail open the circuit, which then refuses; one that comes back closes it', async () => {
    const stage = await openMeasured();
    expect((await stage.scrape()).value('portico_circuit_open')).toBe(0);
    stage.upstream.on(`POST ${exampleInput('purchasePlan').path}`, reset());
    for (let times = 0; times < 20; times++) await stage.ask('purchasePlan', { token: secret() });
    expectProblem(await stage.ask(ID), { status: 503, code: 'upstream_unavailable' });
    const open = await stage.scrape();
    expect(open.value('portico_circuit_open')).toBe(1);
    expect(open.value('portico_refused_total', { by: 'circuit' })).toBe(1);
    stage.clock.advance(5_000);
    expect(await stage.ask(ID)).toMatchObject({ status: 200 });
    expect((await stage.scrape()).value('portico_circuit_open')).toBe(0);
  });
});

test('writes with a key are counted by what became of them', async () => {
  const stage = await openMeasured();
  const { path, body } = exampleInput('createApiKey');
  const buy = (key: string, text = body) =>
    stage.call({
      path,
      token: stage.token,
      body: text,
      headers: { 'Idempotency-Key': key, 'Content-Type': 'application/json' },
    });
  await buy('a');
  await buy('a');
  await buy('a', '{"label":"another"}');
  stage.upstream.once(`POST ${path}`, reset());
  await buy('b');
  await buy('b');
  stage.upstream.once(`POST ${path}`, json(400, '{"detail":"no"}'));
  await buy('c');
  const gate = barrier();
  stage.upstream.once(`POST ${path}`, reply(hold(gate), json(200, '{}')));
  const first = buy('d');
  await stage.upstream.waitForCalls(4);
  await buy('d');
  gate.release();
  await first;
  expect(await outcomesOf(stage, 'portico_idempotency_total')).toEqual({
    answered: 2,
    replayed: 1,
    released: 1,
    unknown: 1,
    key_reused: 1,
    in_progress: 1,
    outcome_unknown: 1,
  });
});
