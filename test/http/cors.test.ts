import { beforeEach, describe, expect, test } from 'vitest';
import { allOperations } from '../support/account-api.ts';
import { legsOf, openOverviews, overviewTable, type OverviewWorld } from '../overviews/helpers.ts';
import { expectHidden, expectShown, LISTED, saidOf, originHeaders, varyOf } from './cors.ts';
import { exampleInput } from '../support/examples.ts';
import type { TextAnswer } from '../support/http.ts';
import { json } from '../support/scripted-upstream.ts';
import { cachedIds } from '../support/table.ts';
import { type Env, openWorld, type World } from '../support/world.ts';

const NATIVE = 'capacitor://localhost';

const ids = allOperations.map(({ id }) => id);
const OVERVIEWS = overviewTable.map(([path]) => path);
const PUBLIC = ['/problems/not_found', '/openapi.json', '/docs', '/docs/start.js', '/livez', '/readyz'];
const PATH = '/api/v2/subscription/';

/** Origins that are not listed, however close they look. */
const OTHERS = [
  'https://other.example',
  'null',
  'http://app.example',
  'https://app.example:8443',
  'https://app.example.evil.example',
  'https://x.app.example',
  'https://app.exampl',
  'HTTPS://APP.EXAMPLE',
  `${LISTED}/`,
  `${LISTED}, ${LISTED}`,
  '*',
  '',
];

let world: World;

const open = async (env: Env = {}) => {
  world = await openWorld({ ALLOWED_ORIGINS: `${LISTED}, ${NATIVE}`, ...env });
  world.answerAll();
};

beforeEach(() => open());

const preflight = (path: string, origin: string | undefined = LISTED, asked = 'GET') =>
  world.call({
    method: 'OPTIONS',
    path,
    headers: {
      ...(origin !== undefined && { origin }),
      'access-control-request-method': asked,
      'access-control-request-headers': 'authorization,x-evil',
    },
  });

describe.each(ids)('%s', (id) => {
  test('shows its answer and its problems to a listed origin, and to no other', async () => {
    const good = await world.ask(id, { headers: { origin: LISTED } });
    expect(good.status).toBeLessThan(300);
    expectShown(good);
    expectHidden(await world.ask(id, { headers: { origin: OTHERS[0]! } }));
    expectHidden(await world.ask(id));
    world.upstream.on(() => true, json(403, { detail: 'no' }));
    const bad = await world.ask(id, { headers: { origin: LISTED, 'cache-control': 'no-cache' } });
    expect(bad.status).toBe(403);
    expectShown(bad);
  });

  test('tells a preflight what the gateway takes', async () => {
    const { path, method } = exampleInput(id);
    for (const target of [path, path.slice(0, -1), `${path}?page=2`]) {
      const answer = await preflight(target, LISTED, method);
      expect([answer.status, answer.text]).toEqual([204, '']);
      expectAllowed(answer);
    }
    expect(world.upstream.calls).toEqual([]);
  });
});

/** The same for every path, whatever is there. */
function expectAllowed(answer: TextAnswer, origin = LISTED): void {
  expect(varyOf(answer)).toContain('Origin');
  expect(saidOf(answer)).toEqual({
    ...originHeaders(origin),
    'access-control-max-age': '7200',
    'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
    'access-control-allow-headers':
      'Authorization, Cache-Control, Content-Type, Idempotency-Key, If-None-Match, Prefer, X-Request-Id, ' +
      'traceparent, tracestate',
  });
}

test.each(cachedIds)('a 304 of %s is shown as its answer is', async (id) => {
  const headers = { origin: LISTED, 'if-none-match': '*' };
  const answer = await world.ask(id, { headers });
  expect(answer.status).toBe(304);
  expectShown(answer);
  expect(varyOf(answer)).toEqual(['Authorization', 'Origin', 'Accept-Encoding']);
  expectHidden(await world.ask(id, { headers: { ...headers, origin: OTHERS[0]! } }));
});

describe.each(overviewTable)('%s', (path, overview) => {
  let overviews: OverviewWorld;

  beforeEach(async () => {
    overviews = await openOverviews({ ALLOWED_ORIGINS: LISTED });
  });

  test.each([
    ['as JSON', {}, 200],
    ['as lines', { accept: 'application/x-ndjson' }, 200],
    ['as a 304', { 'if-none-match': '*' }, 304],
    ['as HEAD', {}, 200, 'HEAD'],
    ['of a bad credential', { authorization: 'nothing' }, 401],
  ] satisfies [string, Record<string, string>, number, string?][])(
    'is shown %s to a listed origin, and to no other',
    async (_, headers: Record<string, string>, status, method = 'GET') => {
      const shown = await overviews.get(path, { method, headers: { ...headers, origin: LISTED } });
      expect(shown.status).toBe(status);
      expectShown(shown);
      expectHidden(await overviews.get(path, { method, headers: { ...headers, origin: OTHERS[0]! } }));
      expectHidden(await overviews.get(path, { method, headers }));
    },
  );

  test('is shown with a section that failed', async () => {
    const leg = legsOf(overview).find(({ required }) => !required)!;
    overviews.on(leg, json(400, { detail: 'no' }));
    const answer = await overviews.get(path, { headers: { origin: LISTED } });
    expect(answer.body.meta.complete).toBe(false);
    expectShown(answer);
  });

  test('tells a preflight what the gateway takes', async () => {
    expectAllowed(await preflight(path));
  });
});

test('a batch is shown, and so is its preflight', async () => {
  const body = { requests: [{ id: 'a', path: PATH }] };
  const batch = { path: '/bff/v1/batch', token: world.token, body };
  expectShown(await world.call({ ...batch, headers: { origin: NATIVE } }), NATIVE);
  expectHidden(await world.call(batch));
  expectAllowed(await preflight('/bff/v1/batch'));
});

test.each(PUBLIC)('%s is shown, and so is its preflight', async (path) => {
  const answer = await world.call({ path, headers: { origin: LISTED } });
  expect(answer.status).toBe(200);
  expectShown(answer);
  expectAllowed(await preflight(path));
});

test('an answer given again is shown with what says so', async () => {
  const keyed = { key: 'k', headers: { origin: LISTED } };
  await world.ask('purchasePlan', keyed);
  const again = await world.ask('purchasePlan', keyed);
  expect(again.headers['idempotency-replayed']).toBe('true');
  expectShown(again);
});

describe('an origin', () => {
  test.each(OTHERS)('that is not listed gets nothing: %j', async (origin) => {
    const answers = [
      await world.ask('getSubscription', { headers: { origin } }),
      await world.call({ path: '/nothing', headers: { origin } }),
      await preflight(PATH, origin),
      await preflight('/nothing', origin),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 204, 204]);
    for (const answer of answers) expectHidden(answer);
  });

  test('of an app in a web view may be listed', async () => {
    expectShown(await world.ask('getSubscription', { headers: { origin: NATIVE } }), NATIVE);
  });
});

describe('a preflight', () => {
  test('needs no credential, counts for no limit, calls nobody and has its line', async () => {
    await open({ RATE_LIMIT_PER_MINUTE: '1' });
    for (const path of [PATH, PATH, '/bff/v1/batch']) expect((await preflight(path)).status).toBe(204);
    expect((await world.ask('getSubscription')).headers['ratelimit']).toContain('r=0');
    expect(world.gateway.lines.slice(0, 3).map(({ method, status }) => [method, status])).toEqual(
      Array.from({ length: 3 }, () => ['OPTIONS', 204]),
    );
    expect(world.gateway.lines[0]).not.toHaveProperty('operation');
    expect(world.upstream.calls).toHaveLength(1);
  });

  test.each(['PUT', 'DELETE', 'TRACE', 'get', '', 'é'])('is told the same whatever it asks for: %j', async (asked) => {
    const answer = await preflight(PATH, LISTED, asked);
    expect(answer.status).toBe(204);
    expectAllowed(answer);
  });

  test.each(['/nothing', '/api/v2/apikey/x/', '/metrics'])(
    'for %s, where nothing is, is told the same',
    async (path) => {
      const answer = await preflight(path);
      expect(answer.status).toBe(204);
      expectAllowed(answer);
    },
  );

  test('of no origin is told nothing', async () => {
    const answer = await world.call({
      method: 'OPTIONS',
      path: PATH,
      headers: { 'access-control-request-method': 'GET' },
    });
    expect(answer.status).toBe(204);
    expectHidden(answer);
  });
});

test.each([...OVERVIEWS, PATH, '/bff/v1/batch', '/docs'])('any other OPTIONS of %s is 405', async (path) => {
  const answer = await world.call({ method: 'OPTIONS', path, headers: { origin: LISTED } });
  expect(answer).toMatchObject({ status: 405, json: { code: 'method_not_allowed' } });
  expect(answer.headers['allow']).toMatch(/GET, HEAD|POST/);
  expectShown(answer);
});

test('any other OPTIONS of where nothing is is 404', async () => {
  const answer = await world.call({ method: 'OPTIONS', path: '/nothing', headers: { origin: LISTED } });
  expect(answer).toMatchObject({ status: 404, json: { code: 'unknown_endpoint' } });
  expectShown(answer);
});

describe('with every origin allowed', () => {
  beforeEach(() => open({ ALLOWED_ORIGINS: '*' }));

  test.each(['https://other.example', 'null', NATIVE])('%s is told so, and without cookies', async (origin) => {
    expectShown(await world.ask('getSubscription', { headers: { origin } }), '*');
    expect(saidOf(await preflight(PATH, origin))).toMatchObject({
      ...originHeaders('*'),
      'access-control-max-age': '7200',
    });
  });

  test('who has no origin is told nothing', async () => {
    expectHidden(await world.ask('getSubscription'));
  });
});

describe('without allowed origins', () => {
  beforeEach(() => open({ ALLOWED_ORIGINS: '' }));

  test('nothing is said, and a preflight is an OPTIONS like any other', async () => {
    const answers = [
      await world.ask('getSubscription', { headers: { origin: LISTED } }),
      await preflight(PATH),
      await preflight('/nothing'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 405, 404]);
    expect(answers.map(saidOf)).toEqual([{}, {}, {}]);
    expect(answers.map(({ headers }) => headers['vary'])).toEqual(['Authorization', undefined, undefined]);
  });

  test.each([PATH, OVERVIEWS[0]!, '/bff/v1/batch', '/docs'])('a preflight of %s says what to set', async (path) => {
    const { status, headers, json: problem } = await preflight(path);
    expect([status, headers['allow']]).toEqual([405, expect.stringMatching(/GET, HEAD|POST/)]);
    expect(problem).toMatchObject({ code: 'method_not_allowed' });
  });
});
