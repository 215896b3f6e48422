import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { exampleRequest } from '../../support/examples.ts';
import { type Answer, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { answer, type Reply, reset } from '../../support/upstream.ts';
import {
  browserOf,
  cookieIn,
  cookiesOf,
  DAY,
  env,
  EVERYWHERE,
  expectRead,
  NAME,
  OVERVIEW,
  SESSION,
  SUBSCRIPTION,
  WARM,
  warmed,
  everywhere,
} from './browser.ts';

const gateway = openGateway(env);
const { upstream, pass } = gateway;
const { page, by, look } = browserOf(gateway);

const SOCIAL = [
  ['login', 'loginSocial'],
  ['register', 'registerSocial'],
] as const;

/** Nobody but the upstream gets to see the token. */
function expectBegun(begun: Answer, token: string): void {
  expect([begun.status, Object.keys(begun.json as object)]).toEqual([201, ['authenticated', 'expires_at', 'account']]);
  expect(begun.json).toMatchObject({ authenticated: true, expires_at: expect.stringMatching(/^\d{4}-.*Z$/) });
  expect(begun.headers.get('cache-control')).toBe('no-store');
  const opened = Buffer.from(cookieIn(begun).slice(NAME.length + 1), 'base64url').toString('latin1');
  expect(begun.text + JSON.stringify([...begun.headers]) + opened).not.toContain(token);
}

everywhere(says('social register or login; the token goes into the cookie only: 201'), async (stage, browser) => {
  for (const [way, id] of SOCIAL) {
    const token = secret();
    stage.upstream.next(id, answer(200, { token, email: 'x' }));
    const begun = await browser.page(`${SESSION}/${way}`, { body: exampleRequest(id).body });
    expectBegun(begun, token);
    await warmed(stage.upstream, token);
    expect((await browser.askBy(cookieIn(begun), 'getApiKey')).status).toBe(200);
    expect(stage.upstream.callsOf(token, 'getApiKey')).toHaveLength(1);
  }
});

describe.each(SOCIAL)(`${says('POST /bff/v1/session/register')}: %s`, (way, id) => {
  const enter = (body: unknown = exampleRequest(id).body, key?: string) =>
    page(`${SESSION}/${way}`, { body, ...(key !== undefined && { key }) });

  test.each<[Reply, status: number, code: string, outcome?: string]>([
    [answer(400, [{ message: 'No.', code: 'invalid_code' }]), 400, 'invalid_code'],
    [answer(401, { detail: 'No.' }), 401, 'unauthenticated'],
    [reset(), 502, 'upstream_unreachable', 'unknown'],
    ...['{}', 'null', '{"token":""}', '{"token":"a b"}', '{"token":["x"]}'].map((text): [Reply, number, string] => [
      answer(200, text),
      502,
      'upstream_bad_response',
    ]),
    [answer(200, { token: 'x'.repeat(2_901) }), 502, 'upstream_bad_response'],
  ])('what the upstream answers (%j) is %i %s', async (reply, status, code, outcome) => {
    upstream.next(id, reply);
    const refused = await enter();
    expect([refused.status, refused.code, refused.json.outcome]).toEqual([status, code, outcome]);
    expect([cookiesOf(refused), upstream.calls.length]).toEqual([[], 1]);
  });

  test('it is checked as at its own path, and sent once for a key', async () => {
    for (const body of ['{', '{}', '']) expect((await enter(body)).status).toBe(400);
    expect([(await enter(undefined, 'a b')).code, upstream.calls]).toEqual(['validation_failed', []]);
    const key = secret();
    const [first, again] = [await enter(undefined, key), await enter(undefined, key)];
    expect(again.json).toMatchObject({ authenticated: true, account: first.json.account });
    expect(upstream.callsTo(id)).toHaveLength(1);
  });

  test('a first section that is refused ends neither the session nor asks for the others', async () => {
    const token = secret();
    upstream.next(id, answer(200, { token }));
    upstream.next('getSubscription', answer(403, { detail: 'No.' }));
    const begun = await enter();
    await gateway.idle();
    expect((await look(cookieIn(begun))).json).toMatchObject({ authenticated: true });
    expectRead(upstream, token, ['getSubscription']);
  });
});

everywhere(
  says('an existing key (2,900 bytes at most) becomes a session after one good read with it'),
  async ({ me, ...stage }) => {
    const [fits, tooLong] = [me.padEnd(2_900, 'x'), me.padEnd(2_901, 'x')];
    const browser = browserOf({ me: fits, ...stage });
    const refused = await browser.page(SESSION, { body: { token: tooLong } });
    expect([refused.status, refused.code, stage.upstream.calls]).toEqual([400, 'validation_failed', []]);
    expect((await browser.signOut(await browser.signIn(), EVERYWHERE)).status).toBe(204);
    const cookie = await browser.signIn(); // of a later epoch, which is longer
    expect(cookie.length).toBeLessThanOrEqual(4_096); // what browsers keep
    expect(stage.upstream.calls[0]).toMatchObject({ id: 'getSubscription', token: fits });
    expect((await browser.askBy(cookie, 'getApiKey')).status).toBe(200);
    expect(stage.upstream.callsOf(fits, 'getApiKey')).toHaveLength(1);
  },
);

describe(says('becomes a session after one good read with it'), () => {
  test.each<[Reply, times: number, status: number, code: string]>([
    [answer(401, { detail: 'Invalid token.' }), 1, 401, 'unauthenticated'],
    [answer(429, {}, { 'retry-after': '7' }), 1, 429, 'rate_limited'],
    [answer(302, '', { location: 'https://evil.example/' }), 1, 502, 'upstream_bad_response'],
    [reset(), 3, 502, 'upstream_unreachable'],
  ])('not after %j, though there is a copy', async (reply, times, status, code) => {
    const token = secret();
    await gateway.ask('getSubscription', { token });
    upstream.next('getSubscription', ...Array.from({ length: times }, () => reply));
    const refused = await page(SESSION, { body: { token } });
    expect([refused.status, refused.code, cookiesOf(refused)]).toEqual([status, code, []]);
    expect(upstream.callsOf(token).map(({ id }) => id)).toEqual(
      Array.from({ length: times + 1 }, () => 'getSubscription'),
    );
  });
});

describe(says('a body is JSON'), () => {
  test.each<[status: number, code: string, body: unknown]>([
    [400, 'validation_failed', { token: 'schlüssel' }],
    [400, 'validation_failed', { token: 'a\r\nX: y' }],
    [400, 'validation_failed', { token: '' }],
    [400, 'validation_failed', { token: ['x'] }],
    [400, 'validation_failed', { token: 'x', remember: true }],
    [400, 'validation_failed', '{"token":"x","__proto__":{"a":1}}'],
    [400, 'validation_failed', []],
    [400, 'malformed_json', '{"token":"x"'],
    [400, 'malformed_json', ''],
  ])('%i %s for %j', async (status, code, body) => {
    const refused = await page(SESSION, { body });
    expect([refused.status, refused.code, upstream.calls]).toEqual([status, code, []]);
  });
});

everywhere(
  says('the same, or `{"authenticated":false}` without a cookie; with a bad one 401; never the token.'),
  async (stage, browser) => {
    const begun = await browser.page(SESSION, { body: { token: stage.me } });
    await warmed(stage.upstream, stage.me);
    const looked = await browser.look(cookieIn(begun));
    expect([looked.status, looked.text, cookiesOf(looked)]).toEqual([200, begun.text, []]);
    expect(looked.headers.get('cache-control')).toBe('no-store');
    for (const asking of [{}, { token: stage.me }])
      expect((await browser.page(SESSION, asking)).text).toBe('{"authenticated":false}');
    expect((await browser.look(`${NAME}=bad`)).status).toBe(401);
    expectRead(stage.upstream, stage.me);
  },
);

everywhere(
  says('`account` is opaque and stable'),
  async ({ me, ...stage }) => {
    const browser = browserOf({ me, ...stage });
    const accountOf = async (token: string) => String((await browser.look(await browser.signIn(token))).json.account);
    const mine = await accountOf(me);
    await stage.pass(40 * DAY);
    expect([await accountOf(me), mine]).toEqual([mine, expect.stringMatching(/^[\w-]{16,}$/)]);
    expect(await accountOf(secret())).not.toBe(mine);
  },
  { time: true },
);

everywhere(
  says('After a sign-in the account overview is read in the background, its first section and then the others'),
  async (stage) => {
    const first = stage.upstream.hold('getSubscription');
    const begun = browserOf(stage).page(SESSION, { body: { token: stage.me } });
    await first.call;
    expectRead(stage.upstream, stage.me, ['getSubscription']);
    first.release();
    expect((await begun).status).toBe(201);
    await warmed(stage.upstream, stage.me);
    expectRead(stage.upstream, stage.me);
  },
);

everywhere(
  says('so that the first overview finds it or joins it'),
  async (stage, browser) => {
    const cookie = await browser.signIn();
    await stage.idle();
    expect((await browser.by(cookie, OVERVIEW)).json).toMatchObject({ meta: { complete: true } });
    expectRead(stage.upstream, stage.me);
  },
  { not: ['workerd'] }, // there nobody knows when its objects have kept a copy
);

describe(says('then the others, so that the first overview'), () => {
  test.each(WARM.slice(1))('joins %s where that is under way', async (id) => {
    const token = secret();
    const held = upstream.hold(id);
    const begun = await page(SESSION, { body: { token } });
    await held.call;
    const overview = by(cookieIn(begun), OVERVIEW);
    await pass(0);
    held.release();
    expect((await overview).json).toMatchObject({ meta: { complete: true } });
    expectRead(upstream, token);
  });

  test('is not counted among the requests of the account, nor is a sign-out', async () => {
    const limited = browserOf(openGateway({ ...env, RATE_LIMIT_PER_MINUTE: '2' }));
    const cookie = await limited.signIn();
    const statuses = [];
    for (let n = 0; n < 3; n++) statuses.push((await limited.look(cookie)).status);
    expect([...statuses, (await limited.signOut(cookie)).status]).toEqual([200, 200, 429, 204]);
  });
});

test(`${says('POST /bff/v1/session {"token":"…"}')}: an address may try twenty in a minute`, async () => {
  const limited = openGateway({ ...env, RATE_LIMIT_PER_MINUTE: '600' });
  const tryOne = (headers = {}) => browserOf(limited).page(SESSION, { body: {}, headers });
  for (let n = 0; n < 30; n++) expect((await tryOne({ 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  for (let n = 0; n < 20; n++) expect((await tryOne()).status).toBe(400);
  expect((await tryOne()).code).toBe('rate_limited');
  await limited.pass(60);
  expect((await tryOne()).status).toBe(400);
});

test(`${says('## 8. Sessions for browsers (`SESSIONS=true`)')}: else nothing is there, and cookies mean nothing`, async () => {
  const without = openGateway({ SECRETS: env.SECRETS });
  const browser = browserOf(without);
  for (const path of [SESSION, `${SESSION}/login`, `${SESSION}/register`])
    for (const method of ['GET', 'POST', 'DELETE'])
      expect((await browser.page(path, { method })).code).toBe('unknown_endpoint');
  expect((await browser.by(`${NAME}=x`, SUBSCRIPTION)).code).toBe('unauthenticated');
  expect((await without.ask('getSubscription')).headers.get('vary')).not.toMatch(/cookie/i);
  expect((await page(`${SESSION}/login`)).headers.get('allow')).toBe('POST');
  expect((await page(SESSION, { method: 'PATCH' })).headers.get('allow')).toBe('GET, HEAD, POST, DELETE');
});
