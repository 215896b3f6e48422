import { Hono } from 'hono';
import { describe, expect, onTestFinished, test } from 'vitest';
import { exampleRequest } from '../support/examples.ts';
import { startGateway } from '../support/gateway.ts';
import type { CallOptions } from '../support/http.ts';
import { callOf, goodAnswer } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { barrier, hold, json, perCall, reply, reset } from '../support/scripted-upstream.ts';
import {
  ask,
  byCookie,
  CLEARED,
  cookieIn,
  DAY,
  expectOver,
  openSessions,
  overviewPaths,
  OWN_PAGE,
  SESSION,
  type SessionWorld,
  signInWith,
  valueIn,
} from './helpers.ts';
import { openShared } from './stores.ts';

const SUBSCRIPTION = '/api/v2/subscription/';
const LOOK = { path: SESSION } as const;
const READ = { path: SUBSCRIPTION } as const;
const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Strict';

const endOf = async ({ by, clock }: SessionWorld, cookie: string) => {
  const { expires_at: ends } = (await by(cookie, LOOK)).json as { expires_at: string };
  return (Date.parse(ends) - clock.wall()) / 1000;
};

const batchOf = (...paths: string[]): CallOptions => ({
  path: '/bff/v1/batch',
  body: { requests: paths.map((path, n) => ({ id: `r${n}`, path })) },
});

/** What prolongs a session: a 2xx that is no stream. */
const RENEWING: Readonly<Record<string, CallOptions>> = {
  'a read': READ,
  'a HEAD': { ...READ, method: 'HEAD' },
  'a read that is never kept': exampleRequest('getApiKey'),
  'a write': exampleRequest('createApiKey'),
  'a write without a body in its answer': exampleRequest('deletePaymentMethod'),
  'a batch': batchOf(SUBSCRIPTION),
  ...Object.fromEntries(overviewPaths.map((path) => [path, { path }])),
};

describe('a session', () => {
  test.for(Object.entries(RENEWING))('is renewed by %s, after a day and not before', async ([, request]) => {
    const world = await openSessions();
    const cookie = await world.signIn();
    world.advance(DAY - 1);
    expect((await world.by(cookie, request)).cookies).toEqual([]);
    world.advance(1);
    const answer = await world.by(cookie, request);
    expect(answer.status).toBeLessThan(300);
    const renewed = cookieIn(answer);
    expect(answer.cookies).toEqual([`${renewed}; Max-Age=${7 * DAY}; ${ATTRIBUTES}`]);
    expect(valueIn(renewed)).not.toBe(valueIn(cookie));
    expect(await endOf(world, renewed)).toBe(7 * DAY);
    expect((await world.by(renewed, request)).cookies).toEqual([]);
  });

  test('that is renewed leaves the cookies of a host alone', async () => {
    const world = await openSessions();
    const host = await startGateway(world.upstream.url, {
      env: { SESSIONS: 'true', SECRETS: world.secrets },
      clock: world.clock,
      around: (app) =>
        new Hono()
          .use(async (c, next) => {
            c.header('Set-Cookie', 'of=host');
            await next();
          })
          .route('/', app),
    });
    onTestFinished(() => host.close());
    const cookie = cookieIn(
      await ask(host, signInWith(world.token)).then(({ cookies, ...answer }) => ({
        ...answer,
        cookies: cookies.slice(1),
      })),
    );
    world.advance(DAY);
    const { cookies } = await ask(host, byCookie(cookie, READ));
    expect(cookies).toEqual(['of=host', expect.stringContaining(ATTRIBUTES)]);
  });

  test('is renewed by a copy and by a call of the upstream', async () => {
    const world = await openSessions();
    const cookie = await world.signIn();
    world.advance(DAY);
    for (const expected of [/fwd/, /hit/]) {
      const answer = await world.by(cookie, READ);
      expect(answer.headers['cache-status']).toMatch(expected);
      expect(answer.cookies).toHaveLength(1);
    }
  });

  test('is renewed by the first 2xx after many days too', async () => {
    const world = await openSessions();
    const cookie = await world.signIn();
    world.advance(7 * DAY - 1);
    expect(await endOf(world, cookieIn(await world.by(cookie, READ)))).toBe(7 * DAY);
  });

  test.for(Object.entries(notRenewing()))('is not renewed by %s', async ([, act]) => {
    const world = await openSessions({ ALLOWED_ORIGINS: 'https://app.example' });
    const cookie = await world.signIn();
    world.advance(2 * DAY);
    const { headers } = await world.call({ path: SUBSCRIPTION, token: world.token });
    const { status, cookies } = await act(world, cookie, headers['etag']!);
    expect([status, cookies]).toEqual([expect.any(Number), []]);
  });

  test('that is renewed each day ends thirty days after it began, and its key begins another', async () => {
    const world = await openSessions();
    let cookie = await world.signIn();
    for (let day = 1; day < 30; day++) {
      world.advance(DAY);
      const answer = await world.by(cookie, READ);
      expect(answer.status).toBe(200);
      if (answer.cookies.length > 0) cookie = cookieIn(answer);
      expect(await endOf(world, cookie)).toBe(Math.min(7, 30 - day) * DAY);
      if (day > 23) expect(answer.cookies).toEqual([]);
    }
    world.advance(DAY - 1);
    expect((await world.by(cookie, READ)).status).toBe(200);
    world.advance(1);
    expectOver(await world.by(cookie, READ));
    expectOver(await world.by(cookie, LOOK));
    expect(await endOf(world, await world.signIn())).toBe(7 * DAY);
  });

  test('that is renewed now and then has what is left of the thirty days', async () => {
    const world = await openSessions();
    let cookie = await world.signIn();
    for (let times = 0; times < 4; times++) {
      world.advance(6 * DAY);
      cookie = cookieIn(await world.by(cookie, READ));
    }
    expect(await endOf(world, cookie)).toBe(6 * DAY);
    world.advance(3 * DAY);
    expect((await world.by(cookie, READ)).cookies).toEqual([]);
    world.advance(3 * DAY);
    expectOver(await world.by(cookie, READ));
  });

  test('stays the same: its account, and what ends it', async () => {
    const world = await openSessions();
    const cookie = await world.signIn();
    const before = (await world.by(cookie, LOOK)).json as { account: string };
    world.advance(DAY);
    const renewed = cookieIn(await world.by(cookie, READ));
    expect((await world.by(renewed, LOOK)).json).toMatchObject({ account: before.account });
    expect((await world.by(cookie, LOOK)).status).toBe(200);
    await world.by(renewed, { ...LOOK, method: 'DELETE' });
    for (const one of [cookie, renewed]) expectOver(await world.by(one, LOOK));
  });
});

type Act = (
  world: SessionWorld,
  cookie: string,
  etag: string,
) => Promise<{ readonly status: number; readonly cookies: readonly string[] }>;

function notRenewing(): Readonly<Record<string, Act>> {
  const streamed = { headers: { accept: 'application/x-ndjson' } };
  const streams = overviewPaths.map((path): [string, Act] => [
    `a stream of ${path}`,
    async ({ by }, cookie) => {
      for (let n = 0; n < 2; n++) {
        const answer = await by(cookie, { path, ...streamed });
        expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/x-ndjson']);
        if (n === 1 || answer.cookies.length > 0) return answer; // cold, then from copies
      }
      throw new Error('unreachable');
    },
  ]);
  return {
    ...Object.fromEntries(streams),
    'a 304': async ({ by }, cookie, etag) => {
      const answer = await by(cookie, { ...READ, headers: { 'If-None-Match': etag } });
      expect(answer.status).toBe(304);
      return answer;
    },
    'a 304 of an overview': async ({ by }, cookie) => {
      const path = overviewPaths[0]!;
      const { headers } = await by(cookie, { path });
      return by(cookie, { path, headers: { 'If-None-Match': headers['etag']! } });
    },
    'a look at the session': ({ by }, cookie) => by(cookie, LOOK),
    'a HEAD of the session': ({ by }, cookie) => by(cookie, { ...LOOK, method: 'HEAD' }),
    'a problem of ours': ({ by }, cookie) => by(cookie, { ...exampleRequest('updateReferralConfig'), body: {} }),
    'a problem of the upstream': ({ by, upstream }, cookie) => {
      upstream.once(callOf('createApiKey'), json(400, { detail: 'No.' }));
      return by(cookie, exampleRequest('createApiKey'));
    },
    'an upstream that is gone': ({ by, upstream }, cookie) => {
      upstream.once(callOf('createApiKey'), reset());
      return by(cookie, exampleRequest('createApiKey'));
    },
    'a path that is none': ({ by }, cookie) => by(cookie, { path: '/nothing' }),
    'a page that takes no session': ({ by }, cookie) => by(cookie, { path: '/livez' }),
    'a preflight': ({ call }, cookie) =>
      call({
        method: 'OPTIONS',
        path: SUBSCRIPTION,
        headers: { Cookie: cookie, Origin: 'https://app.example', 'access-control-request-method': 'GET' },
      }),
    'a refused origin': ({ call }, cookie) => call({ ...READ, headers: { Cookie: cookie, Origin: 'null' } }),
    'a request with a header as well': ({ by, token }, cookie) => by(cookie, { ...READ, token }),
  };
}

const SIGN_OUT = { method: 'DELETE', path: SESSION } as const;

/** A read by a cookie that is due for renewal; `release` lets the upstream answer it. */
async function renewingRead(world: SessionWorld, cookie: string) {
  world.advance(DAY);
  const gate = barrier();
  const answer = reply(
    hold(gate),
    perCall((to) => goodAnswer(to, 1)),
  );
  world.upstream.once(callOf('getApiKey'), answer);
  const read = world.askBy(cookie, 'getApiKey');
  await gate.reached;
  return { read, release: () => gate.release() };
}

describe.each([
  ['one process', (env = {}) => openSessions(env)],
  ['a shared store', (env = {}) => openShared(env)],
] satisfies [string, (env?: Record<string, string>) => Promise<SessionWorld>][])('with %s', (_, open) => {
  test.for([SIGN_OUT, { ...SIGN_OUT, path: `${SESSION}?everywhere=true` }])(
    'a renewal that is under way at a sign-out (%o) does not replace what was cleared, nor a new session',
    async (how) => {
      const world = await open();
      const cookie = await world.signIn();
      const { read, release } = await renewingRead(world, cookie);
      const out = await world.by(cookie, how);
      expect([out.status, out.cookies]).toEqual([204, [CLEARED]]);
      const next = await world.signIn();
      release();
      const late = await read;
      expect([late.status, late.cookies]).toEqual([200, []]);
      for (const request of [LOOK, READ]) {
        expectOver(await world.by(cookie, request));
        expect((await world.by(next, request)).status).toBe(200);
      }
    },
  );

  test('a renewal that is under way when another session begins over it does not replace that', async () => {
    const world = await open();
    const cookie = await world.signIn();
    const { read, release } = await renewingRead(world, cookie);
    await world.signIn(secret(), { headers: { ...OWN_PAGE, Cookie: cookie } });
    release();
    const late = await read;
    expect([late.status, late.cookies]).toEqual([200, []]);
  });

  test('a batch with a 401 in it, which ends the session, does not renew it', async () => {
    const world = await open();
    const cookie = await world.signIn();
    world.advance(DAY);
    world.upstream.once(callOf('getApiKey'), json(401, { detail: 'Invalid token.' }));
    const answer = await world.by(cookie, batchOf(SUBSCRIPTION, exampleRequest('getApiKey').path));
    expect([answer.status, answer.cookies]).toEqual([200, []]);
    expectOver(await world.by(cookie, LOOK));
  });
});

describe('with a shared store', () => {
  test('a renewal hears of a sign-out on another instance', async () => {
    const world = await openShared();
    const cookie = await world.signIn();
    const { read, release } = await renewingRead(world, cookie);
    expect((await ask(world.other, byCookie(cookie, SIGN_OUT))).status).toBe(204);
    release();
    const late = await read;
    expect([late.status, late.cookies]).toEqual([200, []]);
  });

  test('no session is renewed while the store is away, and each is when it is back', async () => {
    const world = await openShared();
    const cookie = await world.signIn();
    const { read, release } = await renewingRead(world, cookie);
    world.away();
    release();
    for (const answer of [await read, await world.by(cookie, READ)])
      expect([answer.status, answer.cookies]).toEqual([200, []]);
    world.back();
    expect((await world.by(cookie, READ)).cookies).toHaveLength(1);
  });
});
