import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exampleRequest } from '../support/examples.ts';
import type { CallOptions, TextAnswer } from '../support/http.ts';
import { callOf, markOf, tokenOf } from '../support/marked.ts';
import { requestText } from '../support/raw-client.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { accountIds, cachedIds, isSocial, readIds, writeIds } from '../support/table.ts';
import {
  ask,
  byCookie,
  CLEARED,
  cookieIn,
  DAY,
  expectOver,
  gatewayBeside,
  isCallOf,
  NAME,
  openSessions,
  overviewPaths,
  OWN_PAGE,
  SESSION,
  type SessionWorld,
  signInWith,
  valueIn,
  WARM_CALLS,
} from './helpers.ts';

const SUBSCRIPTION = '/api/v2/subscription/';
const BATCH = '/bff/v1/batch';
const batchOf = (...paths: string[]) => ({ requests: paths.map((path, n) => ({ id: `r${n}`, path })) });

describe('by cookie', () => {
  test.for(readIds)('%s is the same read as by header, with the same copy', async (id) => {
    const { ask: byHeader, askBy, signIn, upstream, token } = await openSessions();
    const cookie = await signIn();
    const first = await byHeader(id);
    const again = await askBy(cookie, id);
    expect([first.status, again.status]).toEqual([200, 200]);
    expect(again.text === first.text).toBe(cachedIds.includes(id));
    expect(again.cookies).toEqual([]);
    for (const { headers } of upstream.callsTo(callOf(id))) {
      expect(headers['authorization']).toBe(`Token ${token}`);
      expect(headers).not.toHaveProperty('cookie');
    }
  });

  test.for(writeIds.filter((id) => !isSocial(id)))('%s is written with the key of the session', async (id) => {
    const { askBy, signIn, upstream, token } = await openSessions();
    const answer = await askBy(await signIn(), id);
    expect(answer.status).toBeLessThan(300);
    const [sent, ...others] = upstream.callsTo(callOf(id));
    expect(others).toEqual([]);
    expect(sent!.headers).toMatchObject({ authorization: `Token ${token}` });
    expect(sent!.headers).not.toHaveProperty('cookie');
  });

  test.for(writeIds.filter(isSocial))('%s takes no session, good or bad', async (id) => {
    const { askBy, signIn, upstream } = await openSessions();
    for (const cookie of [await signIn(), `${NAME}=bad`]) expect((await askBy(cookie, id)).status).toBe(200);
    for (const { headers } of upstream.callsTo(callOf(id))) {
      expect(headers).not.toHaveProperty('authorization');
      expect(headers).not.toHaveProperty('cookie');
    }
  });

  test.for(accountIds)('a key of %s is the same as by header', async (id) => {
    const { ask: byHeader, askBy, signIn, upstream } = await openSessions();
    const cookie = await signIn();
    const first = await byHeader(id, { key: 'k' });
    const again = await askBy(cookie, id, { headers: { 'Idempotency-Key': 'k' } });
    expect([again.status, again.text]).toEqual([first.status, first.text]);
    expect([first, again].map(({ headers }) => headers['idempotency-replayed'])).toEqual([undefined, 'true']);
    expect(upstream.callsTo(callOf(id))).toHaveLength(1);
  });

  test.for(overviewPaths)('%s has the same copies', async (path) => {
    const { by, call, signIn, token, sent } = await openSessions();
    const cookie = await signIn();
    const first = await call({ path, token });
    let again: TextAnswer | undefined;
    expect(await sent(async () => (again = await by(cookie, { path })))).toEqual([]);
    expect(again!.json).toMatchObject({ data: (first.json as { data: unknown }).data });
    expect(again!.headers['etag']).toBe(first.headers['etag']);
    const unchanged = await by(cookie, { path, headers: { 'If-None-Match': first.headers['etag']! } });
    expect(unchanged.status).toBe(304);
  });

  test('a batch has the same copies', async () => {
    const { by, call, signIn, token, sent } = await openSessions();
    const cookie = await signIn();
    const first = await call({ path: BATCH, token, body: batchOf(SUBSCRIPTION) });
    let again: TextAnswer | undefined;
    expect(await sent(async () => (again = await by(cookie, { path: BATCH, body: batchOf(SUBSCRIPTION) })))).toEqual(
      [],
    );
    expect(again!.text).toBe(first.text);
  });

  test('requests are counted with those by header, and a refused one tells nothing more', async () => {
    const { ask: byHeader, askBy, signIn } = await openSessions({ RATE_LIMIT_PER_MINUTE: '4' });
    const cookie = await signIn();
    const answers: TextAnswer[] = [];
    for (const way of ['header', 'cookie', 'header', 'cookie', 'cookie', 'header'])
      answers.push(way === 'cookie' ? await askBy(cookie, 'getApiKey') : await byHeader('getApiKey'));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 429, 429]);
    expect(answers.map(({ headers }) => /r=(\d+)/.exec(headers['ratelimit'] ?? '')?.[1])).toEqual([
      '3',
      '2',
      '1',
      '0',
      '0',
      '0',
    ]);
    expect(answers.flatMap(({ cookies }) => cookies)).toEqual([]);
  });

  test('a write is read by header and a write by header is read by cookie', async () => {
    const { ask: byHeader, askBy, signIn } = await openSessions();
    const cookie = await signIn();
    const before = markOf((await byHeader('getReferralConfig')).text);
    await askBy(cookie, 'updateReferralConfig');
    const between = markOf((await byHeader('getReferralConfig')).text);
    await byHeader('updateReferralConfig');
    const after = markOf((await askBy(cookie, 'getReferralConfig')).text);
    expect(new Set([before, between, after]).size).toBe(3);
  });

  test('nobody gets the copy of somebody else', async () => {
    const { askBy, signIn } = await openSessions();
    const [one, other] = [await signIn(), await signIn(secret())];
    expect((await askBy(one, 'getSubscription')).text).not.toBe((await askBy(other, 'getSubscription')).text);
  });

  test('a HEAD is one too', async () => {
    const { by, signIn, call } = await openSessions();
    const cookie = await signIn();
    expect((await by(cookie, { method: 'HEAD', path: SUBSCRIPTION })).status).toBe(200);
    expect((await by(cookie, { method: 'HEAD', path: SESSION })).status).toBe(200);
    expect((await call({ method: 'HEAD', path: SUBSCRIPTION })).status).toBe(401);
  });

  test('a POST without a body needs no type, whether it says so or not', async () => {
    const { raw, signIn } = await openSessions();
    const cookie = await signIn();
    const headers = [
      ['Cookie', cookie],
      ['Sec-Fetch-Site', 'same-origin'],
    ] as const;
    const { method, path } = exampleRequest('refreshSubuser');
    for (const more of [[], [['Content-Length', '0']]] as const)
      expect((await raw(requestText({ method, target: path, headers: [...headers, ...more] }))).status).toBeLessThan(
        300,
      );
  });
});

describe('with both', () => {
  test('the header wins', async () => {
    const { askBy, signIn, upstream } = await openSessions();
    const other = secret();
    const cookie = await signIn();
    const answer = await askBy(cookie, 'getApiKey', { token: other });
    expect(answer.status).toBe(200);
    expect(upstream.callsTo(callOf('getApiKey')).map(tokenOf)).toEqual([other]);
  });

  test('nothing else of the cookie counts: not its origin, nor what is wrong with it', async () => {
    const { call, signIn, token } = await openSessions();
    const good = await signIn();
    for (const cookie of [good, `${NAME}=bad`, `${good}; ${good}`])
      for (const headers of [
        { 'Sec-Fetch-Site': 'cross-site' },
        { Origin: 'null' },
        { Origin: 'https://evil.example' },
      ]) {
        const asked = { token, headers: { ...headers, Cookie: cookie } };
        const answers = [
          await call({ path: SUBSCRIPTION, ...asked }),
          await call({ ...exampleRequest('updateReferralConfig'), ...asked }),
        ];
        expect(answers.map(({ status, cookies }) => [status, cookies])).toEqual([
          [200, []],
          [200, []],
        ]);
      }
  });

  test.for(['', 'Token', 'Basic dTpw', 'token  ', 'Token a b', 'x'])(
    'a header `%s` is 401 although the cookie is good',
    async (authorization) => {
      const { by, signIn, sent } = await openSessions();
      const cookie = await signIn();
      const calls = await sent(async () => {
        for (const options of WAYS) expectOver(await by(cookie, { ...options, headers: { authorization } }));
      });
      expect(calls).toEqual([]);
      expect((await by(cookie, { path: SUBSCRIPTION })).status).toBe(200);
    },
  );
});

/** All that takes a session. */
const WAYS: readonly CallOptions[] = [
  { path: SUBSCRIPTION },
  { path: SUBSCRIPTION, method: 'HEAD' },
  { ...exampleRequest('getApiKey') },
  { ...exampleRequest('updateReferralConfig') },
  { ...exampleRequest('purchasePlan') },
  { ...exampleRequest('deletePaymentMethod') },
  ...overviewPaths.map((path) => ({ path })),
  { path: overviewPaths[0]!, headers: { accept: 'application/x-ndjson' } },
  { path: BATCH, body: batchOf(SUBSCRIPTION) },
  { path: SESSION },
  { path: `${SESSION}?everywhere=true`, method: 'DELETE' },
].filter(({ method }) => method !== 'HEAD');

const flipped = (value: string, at: number) =>
  `${value.slice(0, at)}${value[at] === 'A' ? 'B' : 'A'}${value.slice(at + 1)}`;

/** What is wrong with a cookie, made of a good one. */
const BAD: Readonly<Record<string, (good: string) => string>> = {
  'that is empty': () => `${NAME}=`,
  'with another first character': (good) => `${NAME}=${flipped(valueIn(good), 0)}`,
  'with another character in the middle': (good) => `${NAME}=${flipped(valueIn(good), 60)}`,
  'without its last character': (good) => good.slice(0, -1),
  'without its first character': (good) => `${NAME}=${valueIn(good).slice(1)}`,
  'cut to its first twelve bytes': (good) => `${NAME}=${valueIn(good).slice(0, 16)}`,
  'cut to its first byte': (good) => `${NAME}=${valueIn(good).slice(0, 2)}`,
  'with more behind it': (good) => `${good}AAAA`,
  'in quotes': (good) => `${NAME}="${valueIn(good)}"`,
  'with padding': (good) => `${good}=`,
  'in another base64': (good) => `${NAME}=${valueIn(good).replaceAll('-', '+').replaceAll('_', '/')}+`,
  'with a space in it': (good) => `${good.slice(0, -4)} ${good.slice(-4)}`,
  'with a comma in it': (good) => `${good},x`,
  'with two equals signs': (good) => `${NAME}==${valueIn(good)}`,
  'of more than a browser keeps': (good) => `${NAME}=${valueIn(good).repeat(30)}`,
  'that is no ASCII': (good) => `${good}é`,
  'that is there twice': (good) => `${good}; ${good}`,
  'that is there twice without a space': (good) => `${good};${good}`,
  'behind a bad one': (good) => `${NAME}=x; ${good}`,
  'before an empty one': (good) => `${good}; ${NAME}=`,
  'that is there twice, others between': (good) => `a=b; ${good}; c=d;\t${good}`,
};

async function expectAllOver({ by, sent }: SessionWorld, cookie: string): Promise<void> {
  const calls = await sent(async () => {
    for (const options of WAYS) expectOver(await by(cookie, options));
  });
  expect(calls).toEqual([]);
}

describe('a cookie', () => {
  test.for(Object.entries(BAD))('%s is 401 everywhere, and the upstream hears nothing', async ([, make]) => {
    const world = await openSessions();
    const cookie = await world.signIn();
    await expectAllOver(world, make(cookie));
    expect((await world.by(cookie, { path: SUBSCRIPTION })).status).toBe(200);
  });

  test.for(Object.entries(BAD))('%s is cleared by a sign-out, unless there are two', async ([, make]) => {
    const world = await openSessions();
    const good = await world.signIn();
    const cookie = make(good);
    const calls = await world.sent(async () => {
      const out = await world.by(cookie, { path: SESSION, method: 'DELETE' });
      if (cookie.split(`${NAME}=`).length > 2) expectOver(out);
      else expect([out.status, out.cookies, out.headers['clear-site-data']]).toEqual([204, [CLEARED], '"cache"']);
    });
    expect(calls).toEqual([]);
    expect((await world.by(good, { path: SESSION })).json).toMatchObject({ authenticated: true });
  });

  test('that has expired is cleared by a sign-out, and cannot end other sessions', async () => {
    const world = await openSessions();
    const expired = await world.signIn();
    world.advance(7 * DAY);
    const cookie = await world.signIn();
    expectOver(await world.by(expired, { path: `${SESSION}?everywhere=true`, method: 'DELETE' }));
    const out = await world.by(expired, { path: SESSION, method: 'DELETE' });
    expect([out.status, out.cookies]).toEqual([204, [CLEARED]]);
    expect((await world.by(cookie, { path: SESSION })).json).toMatchObject({ authenticated: true });
  });

  test('in two headers is 401', async () => {
    const { raw, signIn, sent } = await openSessions();
    const cookie = await signIn();
    const calls = await sent(async () => {
      for (const cookies of [
        [cookie, cookie],
        [cookie, `${NAME}=x`],
        [`${NAME}=x`, cookie],
      ]) {
        const headers = [['Sec-Fetch-Site', 'same-origin'], ...cookies.map((one) => ['Cookie', one] as const)] as const;
        for (const target of [SUBSCRIPTION, SESSION, overviewPaths[0]!])
          expectOver(await raw(requestText({ target, headers })));
      }
    });
    expect(calls).toEqual([]);
  });

  test('in the second of two headers is good', async () => {
    const { raw, signIn } = await openSessions();
    const cookie = await signIn();
    for (const cookies of [
      ['a=b', cookie],
      [cookie, 'a=b'],
      ['', cookie],
    ]) {
      const headers = cookies.map((one) => ['Cookie', one] as const);
      expect((await raw(requestText({ target: SUBSCRIPTION, headers }))).status).toBe(200);
    }
  });

  test.for(['', 'a=b; ', 'a=b;', ' ', '\t', ';;; ', 'a; ', '=; ', `${NAME}; `])(
    'after `%s` is found',
    async (before) => {
      const { by, signIn } = await openSessions();
      const cookie = await signIn();
      expect((await by(`${before}${cookie}`, { path: SUBSCRIPTION })).status).toBe(200);
      expect((await by(`${before}${cookie} ; a=b`, { path: SUBSCRIPTION })).status).toBe(200);
    },
  );

  test('sealed with a secret that is none of ours is 401', async () => {
    const world = await openSessions();
    const other = await gatewayBeside(world, { SECRETS: secret('of-another-gateway-altogether') });
    const cookie = cookieIn(await ask(other, signInWith(world.token)));
    await world.upstream.waitForCalls(WARM_CALLS, isCallOf(world.token));
    await expectAllOver(world, cookie);
  });

  test('of the same gateway before another upstream is 401', async () => {
    const world = await openSessions();
    const other = await gatewayBeside(world, {}, { upstream: `${world.upstream.url}/base` });
    world.upstream.on(({ path }) => path.startsWith('/base/'), json(200, {}));
    const cookie = cookieIn(await ask(other, signInWith(world.token)));
    expect((await ask(other, byCookie(cookie, { path: SESSION }))).json).toMatchObject({ authenticated: true });
    await world.upstream.waitForCalls(WARM_CALLS, isCallOf(world.token));
    await expectAllOver(world, cookie);
  });

  test('is good until the second in which it ends, and 401 from then on', async () => {
    const world = await openSessions();
    const cookie = await world.signIn();
    world.advance(7 * DAY - 1);
    expect((await world.by(cookie, { path: SESSION })).json).toMatchObject({ authenticated: true });
    world.advance(1);
    await expectAllOver(world, cookie);
  });

  test('changed in any way is 401, never 500', async () => {
    const { call, signIn, sent } = await openSessions();
    const good = valueIn(await signIn());
    // Bytes that a header may hold, as the client sends them.
    const text = fc.string({
      unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
      maxLength: 6,
    });
    const changed = fc
      .record({ at: fc.nat(good.length), cut: fc.nat(8), put: text.map((some) => some.replaceAll(/[;]/g, '')) })
      .map(({ at, cut, put }) => `${good.slice(0, at)}${put}${good.slice(at + cut)}`);
    const whole = fc.string({ maxLength: 300, unit: fc.constantFrom(...Array.from(good), '=', '"', '.', '%') });
    const calls = await sent(() =>
      fc.assert(
        fc.asyncProperty(fc.oneof(changed, whole), async (value) => {
          fc.pre(value !== good);
          const headers = { ...OWN_PAGE, Cookie: `${NAME}=${value}` };
          const answer = await call({ path: SESSION, headers });
          // A last character of which only the unused bits differ is looked at in a test of its own.
          fc.pre(!(value.length === good.length && value.slice(0, -1) === good.slice(0, -1)));
          expectOver(answer);
        }),
        { numRuns: 300 },
      ),
    );
    expect(calls).toEqual([]);
  });
});

/** Names that are not ours, before `=` and the value of a good cookie. As bytes. */
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  'a no-break space before it': `\u00a0${NAME}`,
  'an em space before it': Buffer.from(`\u2003${NAME}`).toString('latin1'),
  'a line separator before it': Buffer.from(`\u2028${NAME}`).toString('latin1'),
  'a byte order mark before it': Buffer.from(`\ufeff${NAME}`).toString('latin1'),
  'an ideographic space before it': Buffer.from(`a=b; \u3000${NAME}`).toString('latin1'),
  'a next-line character before it': Buffer.from(`\u0085${NAME}`).toString('latin1'),
  'a bare 0x85 before it': `\u0085${NAME}`,
  'a no-break space behind it': `${NAME}\u00a0`,
  'a space behind it': `${NAME} `,
  'a tab behind it': `${NAME}\t`,
  'lower case': NAME.toLowerCase(),
  'upper case': NAME.toUpperCase(),
  'another case': '__host-Http-portico',
  'a longer name': `${NAME}2`,
  'a prefix': `x${NAME}`,
  'one underscore less': NAME.slice(1),
  'a shorter name': NAME.slice(0, -1),
  'no prefix': 'portico',
  'the older prefix': '__Host-portico',
  'a bracket': `${NAME}[]`,
  quotes: `"${NAME}"`,
  'percent-encoding': NAME.replace('_', '%5F'),
  'an equals sign before it': `=${NAME}`,
  'a comma before it': `a=b,${NAME}`,
  'a comma and a space before it': `a=b, ${NAME}`,
  'a full-width letter': Buffer.from(NAME.replace('p', 'ｐ')).toString('latin1'),
};

describe('a cookie whose name has', () => {
  test.for(Object.entries(LOOK_ALIKES))('%s is none of ours', async ([, name]) => {
    const { raw, signIn, sent } = await openSessions();
    const good = await signIn();
    const through = (target: string, cookie: string) =>
      raw(Buffer.from(requestText({ target, headers: [['Cookie', cookie]] }), 'latin1'));
    const alike = `${name}=${valueIn(good)}`;
    const calls = await sent(async () => {
      expectOver(await through(SUBSCRIPTION, alike));
      const asked = await through(SESSION, alike);
      expect([asked.status, asked.body]).toEqual([200, '{"authenticated":false}']);
      // Beside ours it is not a second one.
      for (const cookie of [`${alike}; ${good}`, `${good}; ${alike}`])
        expect((await through(SUBSCRIPTION, cookie)).status).toBe(200);
    });
    expect(calls).toEqual([]);
  });

  test.for(['\u000b', '\u000c', '\u0000', '\u0001'])(
    'a control character (%j) before it begins no session',
    async (control) => {
      const { raw, signIn } = await openSessions();
      const cookie = `${control}${await signIn()}`;
      const { status, headers } = await raw(requestText({ target: SUBSCRIPTION, headers: [['Cookie', cookie]] }));
      expect([400, 401]).toContain(status);
      expect(headers['set-cookie']).toBeUndefined();
    },
  );
});

describe('when secrets change', () => {
  const [OLD, NEW] = ['old', 'new'].map((kind) => secret(`${kind}-of-the-gateway-itself`)) as [string, string];

  test('a session goes on while its secret is listed, and ends when it is not', async () => {
    const world = await openSessions({ SECRETS: OLD });
    const cookie = await world.signIn();
    const look = async (secrets: string) =>
      ask(await gatewayBeside(world, { SECRETS: secrets }), byCookie(cookie, { path: SESSION }));
    expect((await look(`${NEW},${OLD}`)).json).toMatchObject({ authenticated: true });
    expect((await look(`${OLD},${NEW}`)).json).toMatchObject({ authenticated: true });
    expectOver(await look(NEW));
  });

  test('the account stays the same while the last secret does, and new sessions are sealed with the first', async () => {
    const world = await openSessions({ SECRETS: OLD });
    const known = (await world.by(await world.signIn(), { path: SESSION })).json as { account: string };
    const both = await gatewayBeside(world, { SECRETS: `${NEW},${OLD}` });
    const answer = await ask(both, signInWith(world.token));
    expect(answer.json).toMatchObject({ account: known.account });
    const cookie = cookieIn(answer);
    expectOver(await world.by(cookie, { path: SESSION }));
    const later = await gatewayBeside(world, { SECRETS: NEW });
    expect((await ask(later, byCookie(cookie, { path: SESSION }))).json).toMatchObject({ authenticated: true });
  });
});

describe('`Vary`', () => {
  const READS = [SUBSCRIPTION, ...overviewPaths];

  test('names the cookie wherever it names the credential', async () => {
    const { call, by, signIn, token } = await openSessions();
    const cookie = await signIn();
    for (const path of READS) {
      const first = await call({ path, token });
      const etag = first.headers['etag']!;
      const answers = [
        first,
        await call({ path, token }),
        await call({ path, token, headers: { 'If-None-Match': etag } }),
        await by(cookie, { path }),
        await by(cookie, { path, headers: { 'If-None-Match': etag } }),
      ];
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 304, 200, 304]);
      for (const { headers } of answers)
        expect(headers['vary']?.split(/, */)).toEqual(expect.arrayContaining(['Authorization', 'Cookie']));
    }
  });

  test('does not without sessions', async () => {
    const { call, token } = await openSessions({ SESSIONS: 'false' });
    for (const path of READS) expect((await call({ path, token })).headers['vary']).not.toMatch(/cookie/i);
  });
});
