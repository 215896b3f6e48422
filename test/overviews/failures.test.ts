import { describe, expect, test } from 'vitest';
import { accountOverview } from '../support/account-api.ts';
import {
  dataText,
  holdAll,
  landed,
  type LegScript,
  legsOf,
  ONLY_ON_ERROR,
  overviewTable,
  openOverviews,
  SUBSCRIPTION,
} from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import {
  barrier,
  bytes,
  close,
  hang,
  hold,
  httpResponse,
  json,
  reply,
  reset,
  type Step,
} from '../support/scripted-upstream.ts';

interface Failure {
  readonly code: string;
  readonly status: number;
  readonly retryable: boolean;
  readonly retry_after?: number;
}

const bad = { code: 'upstream_bad_response', status: 502, retryable: true };
const unreachable = { code: 'upstream_unreachable', status: 502, retryable: true };

const FAILURES: readonly (readonly [name: string, step: Step, failure: Failure])[] = [
  ['500', json(500, { detail: 'oops' }), bad],
  ['502 with HTML', json(502, '<html>Bad gateway</html>', { 'Content-Type': 'text/html' }), bad],
  ['503', json(503, ''), { code: 'upstream_unavailable', status: 503, retryable: true, retry_after: 5 }],
  ['504', json(504, ''), { code: 'upstream_timeout', status: 504, retryable: true }],
  ['a reset', reset(), unreachable],
  ['a close in mid body', reply(bytes(httpResponse(200, '{"id":5}').subarray(0, -3)), close()), bad],
  ['HTML with 200', json(200, '<html>Maintenance</html>', { 'Content-Type': 'text/html' }), bad],
  ['malformed JSON', json(200, '{"id":5,'), bad],
  ['bytes that are not HTTP', bytes('hello?\r\n\r\n'), bad],
  ['a redirect', json(302, '', { Location: 'http://127.0.0.1:9/' }), bad],
  ['404', json(404, { detail: 'Not found.' }), { code: 'not_found', status: 404, retryable: false }],
  ['400', json(400, { detail: 'No.', code: 'odd_account' }), { code: 'odd_account', status: 400, retryable: false }],
  [
    '429',
    json(429, '', { 'Retry-After': '7' }),
    { code: 'rate_limited', status: 429, retryable: true, retry_after: 7 },
  ],
  [
    '503 that says when',
    json(503, '', { 'Retry-After': '9' }),
    { code: 'upstream_unavailable', status: 503, retryable: true, retry_after: 9 },
  ],
];

const others = (legs: readonly LegScript[], leg: LegScript) => legs.filter((other) => other !== leg);

describe.each(overviewTable)('%s', (path, overview) => {
  const legs = legsOf(overview);
  const named = legs.map((leg) => [leg.section, leg] as const);
  const optional = legs.filter((leg) => !leg.required);
  const required = legs.find((leg) => leg.required)!;

  test.each(FAILURES)('fails as a whole when its required section fails: %s', async (_, step, failure) => {
    const world = await openOverviews();
    world.on(required, step);
    const { status, headers, json: problem } = await world.get(path);
    expect(status).toBe(failure.status);
    expect(headers).toMatchObject({ 'content-type': 'application/problem+json', 'cache-control': 'no-store' });
    expect(problem).toMatchObject({
      ...failure,
      type: `/problems/${failure.code}`,
      instance: path,
      section: required.section,
    });
    expect(problem).not.toHaveProperty('data');
    expect(headers['retry-after']).toBe(failure.retry_after?.toString());
  });

  test.each(FAILURES)('goes without a section that fails: %s', async (_, step, failure) => {
    for (const leg of optional) {
      const world = await openOverviews();
      world.on(leg, step);
      const { status, headers, text, body } = await world.get(path);
      expect(status).toBe(200);
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
      expect(headers['etag']).toBeUndefined();
      const data = dataText(legs.map((each) => (each === leg ? { ...each, text: 'null' } : each)));
      expect(text.startsWith(`{"data":${data},"errors":[{"section":"${leg.section}",`), leg.section).toBe(true);
      expect(body.errors).toEqual([{ section: leg.section, ...failure, detail: expect.any(String) as string }]);
      expect(body.meta.complete).toBe(false);
      expect(body.meta.sections[leg.section]).toEqual({ state: 'failed' });
    }
  });

  test.each(optional.map((leg) => [leg.section, leg] as const))('answers in time when %s hangs', async (_, leg) => {
    const clock = manualClock();
    const world = await openOverviews({ REQUEST_TIMEOUT_MS: '1000', UPSTREAM_TIMEOUT_MS: '5000' }, { clock });
    world.on(leg, hang());
    const pending = world.get(path);
    const [hanging] = await world.upstream.waitForCalls(1, `GET ${leg.path}`);
    await landed(world, others(legs, leg));
    clock.advance(1000);
    const { status, body } = await pending;
    expect(status).toBe(200);
    expect(body.errors).toMatchObject([{ section: leg.section, code: 'upstream_timeout', status: 504 }]);
    await world.upstream.disconnected(hanging!);
  });

  test('gives a leg no longer than UPSTREAM_TIMEOUT_MS', async () => {
    const clock = manualClock();
    const world = await openOverviews({ UPSTREAM_TIMEOUT_MS: '1000', REQUEST_TIMEOUT_MS: '1000' }, { clock });
    world.on(required, hang());
    const pending = world.get(path);
    await world.upstream.waitForCalls(legs.length);
    clock.advance(1000);
    expect(await pending).toMatchObject({ status: 504, json: { code: 'upstream_timeout', instance: path } });
  });

  describe.each([401, 403])('a %i', (status) => {
    test.each(named)('of %s fails the whole and abandons the others', async (_, leg) => {
      const world = await openOverviews();
      const siblings = others(legs, leg);
      holdAll(world, siblings);
      const gate = barrier();
      world.on(leg, reply(hold(gate), json(status, { detail: 'Two factors.', code: '2fa_needed' })));
      const pending = world.get(path);
      await world.upstream.waitForCalls(legs.length);
      gate.release();
      const code = status === 401 ? 'unauthenticated' : '2fa_needed';
      expect(await pending).toMatchObject({ status, json: { code, detail: 'Two factors.', instance: path } });
      for (const sibling of siblings) {
        const [abandoned] = world.upstream.callsTo(`GET ${sibling.path}`);
        await world.upstream.disconnected(abandoned!);
      }
      expect(world.upstream.calls).toHaveLength(legs.length);
    });
  });

  test('prefers older copies to failures', async () => {
    const world = await openOverviews(ONLY_ON_ERROR);
    const first = await world.get(path);
    for (const leg of legs) world.on(leg, json(503));
    const second = await world.get(path);
    expect(second).toMatchObject({ status: 200, body: { errors: [], meta: { complete: true } } });
    expect(second.body.data).toEqual(first.body.data);
    expect(second.headers['etag']!.replaceAll('!', '')).toBe(first.headers['etag']);
    const told = { state: 'stale', code: 'upstream_unavailable' };
    for (const section of Object.values(second.body.meta.sections)) expect(section).toMatchObject(told);
    expect(second.headers['cache-status']).toMatch(/^portico; hit; ttl=(0|-\d+)$/);
  });

  test('refuses on a 403 however good its older copies are', async () => {
    const world = await openOverviews(ONLY_ON_ERROR);
    await world.get(path);
    world.on(legs.at(-1)!, json(403, { detail: 'Gone.', code: 'account_suspended' }));
    expect(await world.get(path)).toMatchObject({ status: 403, json: { code: 'account_suspended' } });
  });

  describe('Prefer: handling=strict', () => {
    const strict = { headers: { Prefer: 'respond-async, handling="strict"' } };

    test.each(optional.map((leg) => [leg.section, leg] as const))('fails on a failing %s', async (_, leg) => {
      const world = await openOverviews();
      world.on(leg, json(500, 'oops'));
      const { status, json: problem } = await world.get(path, strict);
      expect({ status, problem }).toMatchObject({ status: 502, problem: { code: 'upstream_bad_response' } });
    });

    test('changes nothing else, and says that it was heeded', async () => {
      const { get } = await openOverviews();
      const { status, headers, text } = await get(path, strict);
      expect(status).toBe(200);
      expect(text).toContain(dataText(legs));
      expect(headers).toMatchObject({
        'preference-applied': 'handling=strict',
        vary: expect.stringContaining('Prefer') as string,
      });
      const lenient = await get(path, { headers: { Prefer: 'handling=lenient, x-handling=strict' } });
      expect(lenient.headers['preference-applied']).toBeUndefined();
      expect(lenient.headers['etag']).toBe(headers['etag']);
    });

    test('takes an older copy for an answer', async () => {
      const world = await openOverviews(ONLY_ON_ERROR);
      await world.get(path);
      world.on(legs.at(-1)!, json(503));
      expect((await world.get(path, strict)).status).toBe(200);
    });
  });

  test('cancels every call when its client leaves', async () => {
    const world = await openOverviews();
    holdAll(world, legs);
    const leaving = new AbortController();
    const pending = world.get(path, { signal: leaving.signal });
    const calls = await world.upstream.waitForCalls(legs.length);
    leaving.abort();
    await expect(pending).rejects.toThrow('aborted');
    for (const each of calls) await world.upstream.disconnected(each);
  });

  test.each(named)('leaves %s to another reader when its client leaves', async (_, leg) => {
    const world = await openOverviews();
    const gate = holdAll(world, legs);
    const read = world.get(leg.path);
    await world.upstream.waitForCalls(1);
    const leaving = new AbortController();
    const pending = world.get(path, { signal: leaving.signal });
    await world.upstream.waitForCalls(legs.length);
    leaving.abort();
    await expect(pending).rejects.toThrow('aborted');
    for (const other of others(legs, leg)) {
      const [cancelled] = world.upstream.callsTo(`GET ${other.path}`);
      await world.upstream.disconnected(cancelled!);
    }
    gate.release();
    expect(await read).toMatchObject({ status: 200, text: leg.upstream });
    expect(world.upstream.calls).toHaveLength(legs.length);
  });
});

test.each([401, 403])('a %i drops whatever was held for the account', async (status) => {
  const world = await openOverviews({ CACHE_POLICY: '{"getReferralConfig":{"fresh":0,"stale":0}}' });
  const { path } = accountOverview;
  await world.get(path);
  world.upstream.once('GET /api/v2/referral/config/', json(status, ''));
  expect((await world.get(path)).status).toBe(status);
  await world.get(path);
  expect(world.upstream.calls).toHaveLength(4 + 1 + 4);
});

test('a section that failed is asked for again, the others are not', async () => {
  const world = await openOverviews();
  const path = '/api/v2/referral/config/';
  world.upstream.once(`GET ${path}`, json(400, ''));
  expect((await world.get(accountOverview.path)).body.meta.complete).toBe(false);
  const { body } = await world.get(accountOverview.path);
  expect(body.meta.complete).toBe(true);
  expect(world.upstream.callsTo(`GET ${path}`)).toHaveLength(2);
  expect(world.upstream.callsTo(`GET ${SUBSCRIPTION}`)).toHaveLength(1);
});
