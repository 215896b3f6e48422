import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openGateway, startGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { sharedStores } from '../../support/stores.ts';
import { seed, times } from '../../support/times.ts';
import { answer } from '../../support/upstream.ts';
import {
  CLEARED,
  DAY,
  EVERYWHERE,
  NAME,
  OVERVIEW,
  SESSION,
  SIGN_OUT,
  SUBSCRIPTION,
  batch,
  browserOf,
  cookieIn,
  cookiesOf,
  env,
  everywhere,
  example,
  expectEnded,
  expectOver,
  type Request,
  valueIn,
  warmed,
} from './browser.ts';

const gateway = openGateway(env);
const { upstream } = gateway;
const browser = browserOf(gateway);
const { askBy, by, look, signIn, signOut } = browser;

const flipped = (value: string, at: number) =>
  `${value.slice(0, at)}${value[at] === 'A' ? 'B' : 'A'}${value.slice(at + 1)}`;

everywhere(says('Cookie `__Host-Http-portico`: HttpOnly, Secure, SameSite=Strict, Path=/'), async (stage) => {
  const begun = await browserOf(stage).page(SESSION, { body: { token: stage.me } });
  await warmed(stage.upstream, stage.me);
  expect(cookiesOf(begun)).toEqual([
    expect.stringMatching(/^__Host-Http-portico=[\w-]+; Max-Age=604800; Path=\/; Secure; HttpOnly; SameSite=Strict$/),
  ]);
});

everywhere(says('sealed; 7 days, renewed while used'), async (stage, page) => {
  const good = await page.signIn();
  for (const bad of [`${NAME}=${flipped(valueIn(good), 60)}`, good.slice(0, -1), `${NAME}="${valueIn(good)}"`])
    await expectEnded(page, stage.upstream, bad);
  expect((await page.look(good)).status).toBe(200);
});

test.each([0, 1, 2])(`${says('Path=/; sealed')}: no other last character is good (%i)`, async (more) => {
  const cookie = await signIn(`${secret()}${'x'.repeat(more)}`);
  const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
  const opened: string[] = [];
  for (const last of letters) if ((await look(cookie.slice(0, -1) + last)).status !== 401) opened.push(last);
  expect(opened).toEqual([cookie.at(-1)]);
});

test(`${says('seal, expiry, revocation, else 401')}: changed in any way it is 401, never 500`, async () => {
  const good = valueIn(await signIn(secret()));
  const spaced = `${good.slice(0, -4)} ${good.slice(-4)}`;
  const examples: [string][] = [[''], [`${good}AAAA`], [spaced], [good.repeat(30)], [`${good}é`]];
  const text = fc.string({ unit: fc.constantFrom(...Array.from('!"#%+,-./09=AZ_az~')), maxLength: 6 });
  const changed = fc
    .record({ at: fc.nat(good.length), cut: fc.nat(8), put: text })
    .map(({ at, cut, put }) => `${good.slice(0, at)}${put}${good.slice(at + cut)}`);
  const whole = fc.string({ maxLength: 300, unit: fc.constantFrom(...Array.from(good), '=', '"', '.', '%') });
  const isOver = async (value: string) => void (value === good || expectOver(await look(`${NAME}=${value}`)));
  await fc.assert(fc.asyncProperty(fc.oneof(changed, whole), isOver), { numRuns: times(300), seed: seed(), examples });
});

everywhere(
  says('seal, expiry, revocation, else 401. A'),
  async (stage, page) => {
    const [expired, ended, sealed] = [await page.signIn(), await page.signIn(), await page.signIn()];
    expect((await page.signOut(ended)).status).toBe(204);
    await expectEnded(page, stage.upstream, ended);
    await expectEnded(page, stage.upstream, `${NAME}=${flipped(valueIn(sealed), 20)}`);
    await stage.pass(7 * DAY - 60);
    expect((await page.look(expired)).status).toBe(200);
    await stage.pass(60);
    await expectEnded(page, stage.upstream, expired);
  },
  { time: true },
);

test(`${says('7 days, renewed while used')}: to the second, and one that is over ends no others`, async () => {
  const token = secret();
  const old = await signIn(token);
  const ends = Date.parse(String((await look(old)).json.expires_at)) - gateway.clock.wall();
  expect(ends).toBe(7 * DAY * 1000);
  await gateway.pass(7 * DAY - 1);
  expect((await look(old)).status).toBe(200);
  const cookie = await signIn(token);
  await gateway.pass(1);
  expectOver(await signOut(old, EVERYWHERE));
  expect((await signOut(old)).status).toBe(204);
  expect((await look(cookie)).json).toMatchObject({ authenticated: true });
});

test(`${says('Path=/; sealed')}: for one upstream, by secrets that are known there`, async () => {
  const [token, other] = [secret(), await startGateway('http://127.0.0.1:9/base', { env })];
  const cookie = await signIn(token);
  const headers = { cookie, 'sec-fetch-site': 'same-origin' };
  expect((await fetch(`${other.url}${SESSION}`, { headers })).status).toBe(401);
  await other.close();
  const stranger = openGateway({ ...env, SECRETS: secret('of-another-gateway-altogether') }, { upstream });
  await expectEnded(browserOf(stranger), upstream, cookie);
});

everywhere(says('two cookies of our name are 401'), async (stage, page) => {
  const good = await page.signIn();
  for (const two of [`${good};${good}`, `${NAME}=x; ${good}`, `${good}; ${NAME}=`, `a=b; ${good}; c=d;\t${good}`])
    await expectEnded(page, stage.upstream, two);
  const out = await page.signOut(`${good}; ${good}`);
  expectOver(out);
  expect((await page.look(good)).status).toBe(200);
});

everywhere(says('(names that only look like ours are not ours)'), async (_, page) => {
  const good = await page.signIn();
  for (const name of [NAME.toLowerCase(), `x${NAME}`, `${NAME} `, `"${NAME}"`, 'portico']) {
    const alike = `${name}=${valueIn(good)}`;
    expect((await page.look(alike)).text).toBe('{"authenticated":false}');
    expectOver(await page.by(alike, SUBSCRIPTION));
    for (const both of [`${alike}; ${good}`, `a=b; ${good};${alike}`])
      expect((await page.look(both)).json).toMatchObject({ authenticated: true });
  }
});

const bytes = (text: string) => Buffer.from(text).toString('latin1');

const LOOK_ALIKES = [
  ...['\u00a0', '\u0085', bytes('\u2003'), bytes('\u2028'), bytes('\ufeff'), 'a=b,', '='].map(
    (before) => before + NAME,
  ),
  ...['\u00a0', '\t', '2', '[]'].map((behind) => NAME + behind),
  NAME.slice(1),
  NAME.slice(0, -1),
  NAME.replace('_', '%5F'),
  NAME.toUpperCase(),
  '__Host-portico',
  bytes(NAME.replace('p', 'ｐ')),
];

test.each(LOOK_ALIKES)(`${says('names that only look like ours')}: %j`, async (name) => {
  const good = await signIn(secret());
  const alike = `${name}=${valueIn(good)}`;
  expect((await look(alike)).text).toBe('{"authenticated":false}');
  expect((await look(`${alike}; ${good}`)).status).toBe(200);
});

test.each(['a=b;', '\t', ';;; ', 'a; ', '=; ', `${NAME}; `])(
  `${says('names that only look like ours are not')}: ours is found after %j`,
  async (before) => {
    const cookie = await signIn(secret());
    expect((await by(`${before}${cookie} ; a=b`, SUBSCRIPTION)).status).toBe(200);
  },
);

test(`${says('two cookies of our name')}: a million blanks are looked at once each`, async () => {
  const good = await signIn(secret());
  for (const blank of [' ', '\t']) {
    const many = blank.repeat(400_000); // each looked at as often as there are: a minute, and the test fails
    for (const cookie of [`a=1${many}b; ${good}`, `a=1;${many}${good}${many}`])
      expect((await look(cookie)).json).toMatchObject({ authenticated: true });
  }
});

everywhere(
  `${says('with `Authorization` the cookie is ignored')}: ${says('with both, the header.')}`,
  async (stage, page) => {
    const [good, token] = [await page.signIn(), stage.me.replace('key', 'other')];
    for (const cookie of [good, `${NAME}=bad`, `${good}; ${good}`])
      for (const headers of [{}, { 'sec-fetch-site': 'cross-site' }, { origin: 'null' }]) {
        const answers = [
          await page.askBy(cookie, 'getApiKey', { token, headers }),
          await page.askBy(cookie, 'updateReferralConfig', { token, headers }),
        ];
        expect(answers.map((one) => [one.status, cookiesOf(one)])).toEqual([
          [200, []],
          [200, []],
        ]);
      }
    expect(stage.upstream.callsTo('getApiKey').map((one) => one.token)).toEqual(Array.from({ length: 9 }, () => token));
    for (const authorization of ['Token', 'Basic dTpw', 'Token a b', 'x'])
      expectOver(await page.by(good, SUBSCRIPTION, { headers: { authorization } }));
    expect((await page.signOut(good, EVERYWHERE)).status).toBe(204); // by whoever has the key: no session of his
    expect((await page.by(good, SESSION, { ...SIGN_OUT, token })).status).toBe(204);
    expectOver(await page.look(good));
  },
);

test(`${says('To the client: strong `ETag`, `If-None-Match` → 304')}: \`Vary\` names the cookie, which has the same copies`, async () => {
  const token = secret();
  const cookie = await signIn(token);
  const first = await gateway.call(SUBSCRIPTION, { token });
  const again = await by(cookie, SUBSCRIPTION, { headers: { 'if-none-match': first.headers.get('etag')! } });
  expect(again.status).toBe(304);
  for (const { headers } of [first, again]) expect(headers.get('vary')).toMatch(/(?=.*\bAuthorization\b).*\bCookie\b/);
});

everywhere(
  says('7 days, renewed while used (daily at most), 30 days at most.'),
  async (stage, page) => {
    let cookie = await page.signIn();
    await stage.pass(DAY - 60);
    expect(cookiesOf(await page.by(cookie, SUBSCRIPTION))).toEqual([]);
    await stage.pass(61);
    for (const left of [7, 7, 7, 7, 5]) {
      const [first, renewed] = [cookie, await page.by(cookie, SUBSCRIPTION)];
      cookie = cookieIn(renewed);
      expect([renewed.status, cookie === first]).toEqual([200, false]);
      const [, maxAge] = /; Max-Age=(\d+); Path=\/; Secure; HttpOnly; SameSite=Strict$/.exec(cookiesOf(renewed)[0]!)!;
      expect(Math.ceil(Number(maxAge) / DAY)).toBe(left);
      expect(cookiesOf(await page.by(cookie, SUBSCRIPTION))).toEqual([]);
      await stage.pass(6 * DAY);
    }
    expectOver(await page.by(cookie, SUBSCRIPTION));
  },
  { time: true },
);

describe(says('renewed while used (daily at most)'), () => {
  test.each<readonly [string, Request]>([
    ['a read', [SUBSCRIPTION]],
    ['a write', example('createApiKey')],
    ['a write without a body in its answer', example('deletePaymentMethod')],
    ['a batch', batch('getSubscription')],
    ['an overview', [OVERVIEW]],
  ])('by %s, after a day and not before', async (_, asked) => {
    const cookie = await signIn(secret());
    const before = (await look(cookie)).json;
    await gateway.pass(DAY - 1);
    expect(cookiesOf(await by(cookie, ...asked))).toEqual([]);
    await gateway.pass(1);
    const renewed = cookieIn(await by(cookie, ...asked));
    const { account, expires_at: ends } = (await look(renewed)).json;
    expect([account, Date.parse(String(ends))]).toEqual([before.account, gateway.clock.wall() + 7 * DAY * 1000]);
    expect(cookiesOf(await by(renewed, ...asked))).toEqual([]);
    expect((await signOut(renewed)).status).toBe(204);
    for (const one of [cookie, renewed]) expectOver(await look(one)); // it is the same session
  });

  test.each<readonly [string, number, Request]>([
    ['a stream', 200, [OVERVIEW, { headers: { accept: 'application/x-ndjson' } }]],
    ['a 304', 304, [SUBSCRIPTION, { headers: { 'if-none-match': '*' } }]],
    ['a look at the session', 200, [SESSION]],
    ['a problem', 400, example('updateReferralConfig', { body: {} })],
    ['a refused origin', 403, [SUBSCRIPTION, { headers: { origin: 'null' } }]],
    ['a request with a header as well', 200, [SUBSCRIPTION, { token: secret() }]],
  ])('not by %s', async (_, status, asked) => {
    const cookie = await signIn(secret());
    await gateway.pass(2 * DAY);
    const got = await by(cookie, ...asked);
    expect([got.status, cookiesOf(got)]).toEqual([status, []]);
  });

  test('not by a batch with a 401 in it, which ends the session', async () => {
    const cookie = await signIn(secret());
    await gateway.pass(DAY);
    upstream.next('getApiKey', answer(401, { detail: 'Invalid token.' }));
    const got = await by(cookie, ...batch('getSubscription', 'getApiKey'));
    expect([got.status, cookiesOf(got)]).toEqual([200, []]);
    expectOver(await look(cookie));
  });
});

everywhere(
  says('A renewal never brings back what was revoked.'),
  async (stage, page) => {
    for (const path of [SESSION, EVERYWHERE]) {
      const cookie = await page.signIn();
      await stage.pass(DAY);
      const held = stage.upstream.hold('getApiKey');
      const late = page.askBy(cookie, 'getApiKey');
      await held.call;
      const out = await page.by(cookie, path, SIGN_OUT);
      expect([out.status, cookiesOf(out)]).toEqual([204, [CLEARED]]);
      const next = await page.signIn();
      held.release();
      const got = await late;
      expect([got.status, cookiesOf(got)]).toEqual([200, []]);
      expectOver(await page.look(cookie));
      expect((await page.look(next)).status).toBe(200);
    }
  },
  { time: true },
);

test(`${says('A renewal never brings back')}: nor takes the place of a session that has begun over it`, async () => {
  const cookie = await signIn(secret());
  await gateway.pass(DAY);
  const held = upstream.hold('getApiKey');
  const late = askBy(cookie, 'getApiKey');
  await held.call;
  await signIn(secret(), cookie);
  held.release();
  const got = await late;
  expect([got.status, cookiesOf(got)]).toEqual([200, []]);
});

test(`${says('never brings back what was revoked')}: so there is none without the store, and one when it is back`, async () => {
  const { shelf, store } = sharedStores(gateway.clock);
  const page = browserOf(openGateway(env, { upstream, clock: gateway.clock, store }));
  const cookie = await page.signIn(secret());
  await gateway.pass(DAY);
  const held = upstream.hold('getApiKey');
  const late = page.askBy(cookie, 'getApiKey');
  await held.call;
  shelf.isAway = true;
  held.release();
  for (const got of [await late, await page.by(cookie, SUBSCRIPTION)])
    expect([got.status, cookiesOf(got)]).toEqual([200, []]);
  shelf.isAway = false;
  await gateway.pass(10);
  expect(cookiesOf(await page.by(cookie, SUBSCRIPTION))).toHaveLength(1);
});
