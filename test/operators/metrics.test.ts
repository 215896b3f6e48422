import { describe, expect, test } from 'vitest';
import { ERROR_CODES, REASONS } from '../../src/core/errors.ts';
import { STATUS_CLASSES } from '../../src/core/metrics.ts';
import { PHASES } from '../../src/core/timeline.ts';
import { VERSION } from '../../src/core/version.ts';
import { allOperations, allOverviews } from '../support/account-api.ts';
import { exampleRequest } from '../support/examples.ts';
import { exposition } from '../support/exposition.ts';
import { type Env, type Gateway, openGateway } from '../support/gateway.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { answer, hang, reset } from '../support/upstream.ts';

const REQUESTS = 'portico_request_duration_seconds_count';
const CALLS = 'portico_upstream_calls_total';
const READ = 'getSubscription';
const OVERVIEW = '/bff/v1/account-overview';

function open(env: Env = {}) {
  const gateway = openGateway(env);
  const scrape = async () => exposition(await gateway.scrape());
  /** The counts of a counter by its outcomes, without zeros. */
  const outcomes = async (name: string) => {
    const counted = ((await scrape()).familyOf(name)?.samples ?? []).filter(({ value }) => value > 0);
    return Object.fromEntries(counted.map(({ labels, value }) => [labels['outcome'] ?? '', value]));
  };
  return { ...gateway, scraped: scrape, outcomes, reads: () => outcomes('portico_cache_reads_total') };
}

describe('reads', () => {
  test('are counted by how the cache came to an answer', async () => {
    const { ask, pass, idle, reads, scraped } = open();
    for (const seconds of [0, 31, 0]) {
      await ask(READ);
      await pass(seconds);
    }
    await idle();
    await ask('getVerificationFlow');
    expect(await reads()).toEqual({ miss: 1, hit: 1, stale: 1, bypass: 1 });
    const all = await scraped();
    expect(all.value('portico_cache_entries')).toBe(1);
    expect(all.value('portico_cache_bytes')).toBeGreaterThan(100);
  });

  test('that join a call under way are collapsed, and one is seen under way', async () => {
    const { ask, pass, upstream, scraped, reads } = open();
    const held = upstream.hold(READ);
    const asked = Array.from({ length: 3 }, () => ask(READ));
    await held.call;
    await pass(0);
    const during = await scraped();
    held.release();
    await Promise.all(asked);
    expect(await reads()).toEqual({ miss: 1, collapsed: 2 });
    const after = await scraped();
    for (const gauge of ['portico_reads_under_way', 'portico_upstream_calls_under_way'])
      expect([during.value(gauge), after.value(gauge)]).toEqual([1, 0]);
  });
});

describe('requests', () => {
  test('are counted by operation, class of status and what the cache had', async () => {
    const { ask, call, upstream, scraped } = open({ RATE_LIMIT_PER_MINUTE: '4' });
    const { headers } = await ask(READ);
    await ask(READ, { headers: { 'If-None-Match': headers.get('etag') ?? '' } });
    upstream.next('getTransaction', answer(404, { detail: 'Not found.' }));
    await ask('getTransaction');
    await call('/nowhere');
    for (let times = 0; times < 2; times++) await ask(READ);
    const { value } = await scraped();
    const counted = [
      { operation: READ, status: '2xx', cache: 'miss' },
      { operation: READ, status: '3xx', cache: 'hit' },
      { operation: 'getTransaction', status: '4xx' },
      { operation: '(none)', status: '4xx' },
    ].map((labels) => value(REQUESTS, labels));
    expect(counted).toEqual([1, 1, 1, 1]);
    expect(value('portico_refused_total', { by: 'rate_limit' })).toBe(1);
  });

  test('are timed, in seconds and in buckets that count what is below them too', async () => {
    const { ask, clock, upstream, scraped } = open();
    const held = upstream.hold(READ);
    const asked = ask(READ);
    await held.call;
    clock.advance(30);
    held.release();
    await asked;
    await ask(READ);
    const { value } = await scraped();
    const below = (le: string) => value('portico_request_duration_seconds_bucket', { operation: READ, le });
    expect(['0.0005', '0.025', '0.05', '10', '+Inf'].map(below)).toEqual([1, 1, 2, 2, 2]);
    for (const name of ['portico_request_duration_seconds_sum', 'portico_upstream_call_duration_seconds_sum'])
      expect(value(name, { operation: READ })).toBeCloseTo(0.03, 5);
    expect(value('portico_upstream_call_duration_seconds_count', { operation: READ })).toBe(1);
  });
});

describe('upstream calls', () => {
  test('are counted by operation and outcome, those that were made again as retries too', async () => {
    const { ask, upstream, scraped } = open();
    upstream.next('getReferralConfig', answer(503));
    upstream.next(READ, answer(403, { detail: 'no' }));
    await ask(READ);
    await ask('getReferralConfig');
    const { value } = await scraped();
    expect(value(CALLS, { operation: READ, outcome: 'refused' })).toBe(1);
    for (const outcome of ['failed', 'good']) expect(value(CALLS, { operation: 'getReferralConfig', outcome })).toBe(1);
    expect([value(CALLS), value('portico_upstream_retries_total')]).toEqual([3, 1]);
  });

  test('that nobody waited for any more are abandoned, and have no duration', async () => {
    const { ask, upstream, scraped, idle } = open();
    upstream.next(READ, hang());
    const leaving = new AbortController();
    const asked = ask(READ, { signal: leaving.signal }).catch(() => undefined);
    await upstream.arrived(READ);
    leaving.abort();
    await asked;
    await idle();
    const { value } = await scraped();
    expect(value(CALLS, { outcome: 'abandoned' })).toBe(1);
    expect(value('portico_upstream_call_duration_seconds_count')).toBe(0);
  });

  test('that fail open the circuit, which then refuses; one that comes back closes it', async () => {
    const { ask, pass, upstream, scraped } = open();
    upstream.next('purchasePlan', ...Array.from({ length: 20 }, reset));
    for (let times = 0; times < 20; times++) await ask('purchasePlan', { token: secret() });
    expect(await ask(READ)).toMatchObject({ status: 503, code: 'upstream_unavailable' });
    const { value } = await scraped();
    expect([value('portico_circuit_open'), value('portico_refused_total', { by: 'circuit' })]).toEqual([1, 1]);
    await pass(5);
    expect((await ask(READ)).status).toBe(200);
    expect((await scraped()).value('portico_circuit_open')).toBe(0);
  });
});

test('writes with a key are counted by what became of them', async () => {
  const { ask, upstream, outcomes } = open();
  const write = (key: string, body = exampleRequest('createApiKey').body) => ask('createApiKey', { key, body });
  await write('a');
  await write('a');
  await write('a', '{"label":"another"}');
  upstream.next('createApiKey', reset(), answer(400, { detail: 'no' }));
  await write('b');
  await write('b');
  await write('c');
  const held = upstream.hold('createApiKey');
  const first = write('d');
  await held.call;
  await write('d');
  held.release();
  await first;
  const once = { replayed: 1, released: 1, unknown: 1, key_reused: 1, in_progress: 1, outcome_unknown: 1 };
  expect(await outcomes('portico_idempotency_total')).toEqual({ answered: 2, ...once });
});

test('they are in the text format, name no credential and no account, and count no probe', async () => {
  const { ask, call, scrape, lines, scraped, me } = open();
  await ask(READ);
  await ask('purchasePlan', { key: me });
  const before = await scraped();
  for (const path of ['/livez', '/readyz']) await call(path);
  expect((await scraped()).value(REQUESTS)).toBe(before.value(REQUESTS));
  const text = await scrape();
  const account = lines.find(({ msg }) => msg === 'request')?.['account'];
  expect(account).toMatch(/./);
  expect(text).not.toContain(account);
  expect(leaksIn(text)).toEqual([]);
  const types = [...before.families.values()].map(({ type }) => type);
  expect(new Set(types)).toEqual(new Set(['counter', 'gauge', 'histogram']));
  expect(before.familyOf('nodejs_eventloop_lag_p99_seconds')?.type).toBe('gauge');
  expect([...before.families].filter(([, { help }]) => help === '')).toEqual([]);
});

let words = 0;
const word = () => `made-up-${++words}`;

/** All that a client can make up. */
const INVENTED: Readonly<Record<string, (gateway: Gateway) => Promise<unknown>>> = {
  paths: ({ call }) => call(`/${word()}/${word()}`),
  credentials: ({ ask }) => ask(READ, { token: secret() }),
  ids: ({ call }) => call(`/api/v2/payment/method/${++words}/`),
  queries: ({ call }) => call(`/api/v2/notification/?${word()}=${word()}`),
  sections: ({ call }) => call(`${OVERVIEW}?sections=${word()}`),
  'items of a batch': ({ call }) =>
    call('/bff/v1/batch', { body: { requests: [{ id: word(), path: `/${word()}/` }] } }),
  'idempotency keys': ({ ask }) => ask('createApiKey', { key: word() }),
  'keys that are asked for': ({ call }) => call('/bff/v1/outcome', { key: word() }),
  headers: ({ ask }) =>
    ask(READ, { headers: { 'X-Request-Id': word(), 'User-Agent': word(), Prefer: word(), Host: `${word()}.example` } }),
};

test.each(Object.entries(INVENTED))('%s that a client makes up add no series', async (_, request) => {
  const gateway = open();
  for (let times = 0; times < 2; times++) await request(gateway); // the second may be one from the cache
  const before = await gateway.scraped();
  for (let times = 0; times < 10; times++) await request(gateway);
  expect((await gateway.scraped()).series).toEqual(before.series);
});

test('operations are those of the tables, and all labels are from fixed sets', async () => {
  const gateway = open();
  for (const request of Object.values(INVENTED)) await request(gateway);
  for (const { id } of allOperations) await gateway.ask(id);
  for (const { path } of allOverviews) await gateway.call(path);
  await gateway.call(OVERVIEW, { headers: { accept: 'application/x-ndjson' } });
  gateway.upstream.next(READ, answer(500));
  await gateway.ask(READ, { token: secret() });
  const { samples, value } = await gateway.scraped();
  const ids = [...allOperations, ...allOverviews].map(({ id }) => id);
  const operations = new Set([...ids, 'batch', 'getOutcome', '(none)']);
  const known: Readonly<Record<string, ReadonlySet<string>>> = {
    operation: operations,
    status: new Set(STATUS_CLASSES),
    cache: new Set(['hit', 'stale', 'miss', 'request', 'bypass', 'method', 'stream', '(none)']),
    reason: new Set(['', ...REASONS]),
    code: new Set([...ERROR_CODES, '(upstream)']),
    phase: new Set(PHASES),
    version: new Set([VERSION]),
    node: new Set([process.version]),
  };
  const labels = samples.filter(({ name }) => name.startsWith('portico_')).flatMap((one) => Object.entries(one.labels));
  expect(labels.filter(([name, text]) => known[name]?.has(text) === false)).toEqual([]);
  expect(new Set(labels.map(([name]) => name))).toEqual(new Set([...Object.keys(known), 'le', 'outcome', 'by']));
  for (const operation of operations)
    expect([operation, value(REQUESTS, { operation }) > 0]).toEqual([operation, true]);
});
