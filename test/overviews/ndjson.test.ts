import { describe, expect, test, vi } from 'vitest';
import { accountOverview } from '../support/account-api.ts';
import {
  CARD_LIST,
  holdAll,
  landed,
  legOf,
  type LegScript,
  legsOf,
  optionalOf,
  overviewTable,
  openOverviews,
  SUBSCRIPTION,
  type OverviewWorld,
} from './helpers.ts';
import { manualClock } from '../support/clock.ts';
import { exampleBody } from '../support/examples.ts';
import { type CallOptions, stream } from '../support/http.ts';
import { barrier, hang, hold, json, reply } from '../support/scripted-upstream.ts';

const NDJSON = { Accept: 'application/x-ndjson' };
/** What a whole answer ends with. */
const COMPLETE = expect.stringMatching(/^\{"complete":true,"etag":"\\"[^"]*\\""\}$/) as string;
/** Where a section failed. */
const PARTIAL = '{"complete":true}';

const open = async ({ gateway, token }: OverviewWorld, path: string, options: Partial<CallOptions> = {}) => {
  const answer = await stream(gateway.url, { path, token, headers: NDJSON, ...options });
  const iterator = answer.lines[Symbol.asyncIterator]();
  return {
    ...answer,
    next: async () => ((await iterator.next()) as { value?: string }).value,
    rest: async () => {
      const lines: string[] = [];
      for await (const line of { [Symbol.asyncIterator]: () => iterator }) lines.push(line);
      return lines;
    },
  };
};

const lineOf = ({ section, text }: LegScript, state = 'fresh') =>
  `{"section":"${section}","state":"${state}","data":${text}}`;

const sectionOf = (line: string | undefined) => (JSON.parse(line ?? '{}') as { section?: string }).section;

/** Resolves when the gateway has done with a request, whether or not its answer was read. */
const loggedAs = ({ gateway }: OverviewWorld, route: string, count = 1) =>
  vi.waitFor(() => {
    const found = gateway.lines.filter((line) => line.route === route);
    expect(found).toHaveLength(count);
    return found;
  });

describe.each(overviewTable)('%s as lines', (path, overview) => {
  const legs = legsOf(overview);
  const optional = legs.filter((leg) => !leg.required);
  const required = legs.find((leg) => leg.required)!;
  /** Lines of which one is the required section: at most those before it in the table come before it. */
  const begins = legs.indexOf(required) + 1;
  const table = optional.map((leg) => [leg.section, leg] as const);

  test('has one for each section and a last one that says it is whole', async () => {
    const world = await openOverviews();
    const answer = await open(world, path);
    const { 'content-type': type, 'cache-control': control, vary, etag } = answer.headers;
    expect({ status: answer.status, type, control, etag }).toEqual({
      status: 200,
      type: 'application/x-ndjson',
      control: 'no-store',
      etag: undefined,
    });
    expect(vary).toContain('Accept');
    const lines = await answer.rest();
    expect(lines.slice(0, begins)).toContain(lineOf(required));
    expect(lines.slice(0, -1).toSorted()).toEqual(legs.map((leg) => lineOf(leg)).toSorted());
    expect(lines.at(-1)).toEqual(COMPLETE);
    expect(world.upstream.calls).toHaveLength(legs.length);
  });

  test('leaves no timer behind, neither cold nor from copies', async () => {
    const clock = manualClock();
    const world = await openOverviews({}, { clock });
    for (const count of [1, 2]) {
      expect((await (await open(world, path)).rest()).at(-1)).toEqual(COMPLETE);
      await loggedAs(world, path, count);
      expect([count, clock.pending()]).toEqual([count, 0]);
    }
  });

  test('sends each the moment it is there', async () => {
    const world = await openOverviews();
    const gates = optional.map((leg) => [leg, holdAll(world, [leg])] as const);
    const answer = await open(world, path);
    expect(await answer.next()).toBe(lineOf(required));
    await world.upstream.waitForCalls(legs.length);
    for (const [leg, gate] of gates.toReversed()) {
      gate.release();
      expect(await answer.next()).toBe(lineOf(leg));
    }
    expect(await answer.rest()).toEqual([COMPLETE]);
  });

  test('begins with the required section, however late it is', async () => {
    const world = await openOverviews();
    const gate = holdAll(world, [required]);
    const opening = open(world, path);
    await world.upstream.waitForCalls(legs.length);
    await landed(world, optional);
    gate.release();
    const lines = await (await opening).rest();
    expect(lines.slice(0, begins)).toContain(lineOf(required));
    expect(lines).toHaveLength(legs.length + 1);
  });

  test('is a problem with its status when the required section fails', async () => {
    const world = await openOverviews();
    holdAll(world, optional);
    world.on(required, json(503, ''));
    const answer = await open(world, path);
    expect(answer).toMatchObject({ status: 503, headers: { 'content-type': 'application/problem+json' } });
    expect(JSON.parse((await answer.rest()).join(''))).toMatchObject({ code: 'upstream_unavailable', instance: path });
  });

  test.each(table)('is whole with an error in place of %s', async (section, leg) => {
    const world = await openOverviews();
    world.on(leg, json(503, '', { 'Retry-After': '9' }));
    const lines = await (await open(world, path)).rest();
    const line = lines.find((each) => sectionOf(each) === section) ?? '{}';
    expect(JSON.parse(line)).toEqual({
      section,
      state: 'failed',
      error: {
        code: 'upstream_unavailable',
        status: 503,
        detail: expect.any(String) as string,
        retryable: true,
        retry_after: 9,
      },
    });
    expect(lines).toHaveLength(legs.length + 1);
    expect(lines.at(-1)).toBe(PARTIAL);
  });

  test.each(table)('is whole in time when %s hangs', async (section, leg) => {
    const clock = manualClock();
    const world = await openOverviews({ REQUEST_TIMEOUT_MS: '1000' }, { clock });
    world.on(leg, hang());
    const answer = await open(world, path);
    for (let count = 1; count < legs.length; count += 1) expect(sectionOf(await answer.next())).not.toBe(section);
    clock.advance(1000);
    const line: unknown = JSON.parse((await answer.next()) ?? '{}');
    expect(line).toMatchObject({ section, state: 'failed', error: { code: 'upstream_timeout', status: 504 } });
    expect(await answer.rest()).toEqual([PARTIAL]);
  });

  test.each(table)('is cut off by a 403 of %s after it began, and the others are abandoned', async (_, leg) => {
    const world = await openOverviews();
    const slow = optional.filter((other) => other !== leg);
    holdAll(world, slow);
    const gate = barrier();
    world.on(leg, reply(hold(gate), json(403, { detail: 'Two factors.', code: '2fa_needed' })));
    const answer = await open(world, path);
    expect(await answer.next()).toBe(lineOf(required));
    await world.upstream.waitForCalls(legs.length);
    gate.release();
    expect(await answer.rest().catch(() => [])).toEqual([]);
    for (const other of slow) await world.upstream.disconnected(world.upstream.callsTo(`GET ${other.path}`)[0]!);
    expect(await loggedAs(world, path)).toMatchObject([{ status: 200, code: '2fa_needed' }]);
    // The account is refused, so nothing of it is held any more.
    world.on(required, json(200, required.upstream));
    expect((await world.get(required.path)).headers['cache-status']).toMatch(/fwd=miss/);
  });

  test.each(table)('is a problem when %s is refused before it began', async (_, leg) => {
    const world = await openOverviews();
    holdAll(world, [required]);
    world.on(leg, json(401, ''));
    const answer = await open(world, path);
    expect(answer.status).toBe(401);
    await answer.rest();
  });

  test.each(table)('with handling=strict fails as a whole for %s', async (_, leg) => {
    const world = await openOverviews();
    world.on(leg, json(500, 'oops'));
    const answer = await open(world, path, { headers: { ...NDJSON, Prefer: 'handling=strict' } });
    expect(answer.status).toBe(502);
    expect(JSON.parse((await answer.rest()).join(''))).toMatchObject({ code: 'upstream_bad_response', instance: path });
  });

  test('with handling=strict begins when all is there', async () => {
    const world = await openOverviews();
    const answer = await open(world, path, { headers: { ...NDJSON, Prefer: 'handling=strict' } });
    expect(answer.headers['preference-applied']).toBe('handling=strict');
    expect(await answer.rest()).toEqual([...legs.map((leg) => lineOf(leg)), COMPLETE]);
    const [line] = await loggedAs(world, path);
    expect(line).not.toHaveProperty('code');
  });

  test.runIf(optional.length > 0)('cancels its calls when the client leaves in mid stream', async () => {
    const world = await openOverviews();
    holdAll(world, optional);
    const leaving = new AbortController();
    const answer = await open(world, path, { signal: leaving.signal });
    expect(await answer.next()).toBe(lineOf(required));
    await world.upstream.waitForCalls(legs.length);
    leaving.abort();
    for (const { path: at } of optional) await world.upstream.disconnected(world.upstream.callsTo(`GET ${at}`)[0]!);
    await expect(answer.rest()).rejects.toThrow();
    const [line] = await loggedAs(world, path);
    expect(line).toMatchObject({ status: 200, code: 'client_left', upstream_calls: legs.length });
    expect(world.gateway.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('leaves in the cache what the next overview is served by', async () => {
    const world = await openOverviews();
    await (await open(world, path)).rest();
    const { headers } = await world.get(path);
    expect(headers['cache-status']).toMatch(/^portico; hit; /);
    const lines = await (await open(world, path)).rest();
    expect(lines.slice(0, -1).toSorted()).toEqual(legs.map((leg) => lineOf(leg)).toSorted());
    expect(lines.at(-1)).toEqual(COMPLETE);
    expect(world.upstream.calls).toHaveLength(legs.length);
  });
});

const { path } = accountOverview;

test('JSON over several lines becomes one, value for value', async () => {
  const world = await openOverviews();
  const pretty = '{\r\n  "id": 5,\n\n\t"payment_method": null,\r"text": "a\\n  b\\r\\n c   d",\n "n": 25.0\n}\n';
  world.on({ path: SUBSCRIPTION }, json(200, pretty));
  const lines = await (await open(world, path)).rest();
  expect(lines).toHaveLength(5);
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    section: 'subscription',
    state: 'fresh',
    data: JSON.parse(pretty) as unknown,
  });
  expect(lines[0]).toContain('25.0');
});

test('fields and sections trim lines too; without a required section it begins at once', async () => {
  const world = await openOverviews();
  const gate = holdAll(world, [legOf(accountOverview, 'notifications')]);
  const query = 'sections=notifications,referral_config&fields[referral_config]=id,credits_earned';
  const answer = await open(world, `${path}?${query}`);
  expect(await answer.next()).toBe(
    '{"section":"referral_config","state":"fresh","data":{"id":9,"credits_earned":12.5}}',
  );
  gate.release();
  expect(await answer.rest()).toEqual([lineOf(legOf(accountOverview, 'notifications')), COMPLETE]);
  expect(world.upstream.calls).toHaveLength(2);
});

test('a card that is not there and one whose subscription failed have lines of their own', async () => {
  const world = await openOverviews();
  world.on({ path: SUBSCRIPTION }, json(200, exampleBody('getSubscription', { payment_method: null })));
  const only = `${path}?sections=payment_method`;
  expect(await (await open(world, only)).rest()).toEqual([
    '{"section":"payment_method","state":"not_applicable","data":null}',
    COMPLETE,
  ]);
  world.on({ path: SUBSCRIPTION }, json(500, ''));
  const headers = { ...NDJSON, 'Cache-Control': 'no-cache' };
  const [line, last] = await (await open(world, only, { headers })).rest();
  expect(JSON.parse(line ?? '')).toMatchObject({ section: 'payment_method', state: 'skipped', error: { status: 502 } });
  expect(last).toBe(PARTIAL);
});

describe('Accept', () => {
  test.each([
    ['application/x-ndjson', true],
    ['Application/X-NDJSON; q=0.5', true],
    ['application/json;q=0.5, application/x-ndjson', true],
    ['application/x-ndjson;q=0.9, application/json;q=0.8, */*;q=0.1', true],
    ['text/html, application/x-ndjson;q=0.1', true],
    ['application/json, application/x-ndjson;q=0.5', false],
    ['application/x-ndjson;q=0', false],
    ['application/x-ndjson;q=0, */*', false],
    ['application/json', false],
    ['*/*', false],
    ['application/*', false],
    ['text/html', false],
    ['', false],
  ])('%j: lines %s', async (accept, isLines) => {
    const world = await openOverviews();
    const { headers, text } = await world.get(path, { headers: { Accept: accept } });
    expect(headers['content-type']).toBe(isLines ? 'application/x-ndjson' : 'application/json');
    expect(/\n\{"complete":true,[^\n]+\n$/.test(text)).toBe(isLines);
  });
});

test('a slow reader gets all of it, and holds nobody up', async () => {
  const world = await openOverviews();
  const large = exampleBody('getReferralConfig', { filler: 'é'.repeat(2_000_000) });
  world.on(legOf(accountOverview, 'referral_config'), json(200, large));
  const answer = await open(world, path);
  await loggedAs(world, path); // The gateway is done, and not a line has been read.
  const lines = await answer.rest();
  expect(lines).toHaveLength(5);
  expect(lines.find((line) => sectionOf(line) === 'referral_config')).toBe(
    `{"section":"referral_config","state":"fresh","data":${large}}`,
  );
});

test('a read that another client waits for outlives a stream that is left', async () => {
  const world = await openOverviews();
  const gate = holdAll(world, optionalOf(accountOverview));
  const read = world.get(CARD_LIST);
  await world.upstream.waitForCalls(1);
  const leaving = new AbortController();
  const answer = await open(world, path, { signal: leaving.signal });
  expect(sectionOf(await answer.next())).toBe('subscription');
  await world.upstream.waitForCalls(4);
  leaving.abort();
  await expect(answer.rest()).rejects.toThrow();
  await world.upstream.disconnected(world.upstream.callsTo('GET /api/v2/referral/config/')[0]!);
  gate.release();
  expect(await read).toMatchObject({ status: 200, text: exampleBody('listPaymentMethods') });
});
