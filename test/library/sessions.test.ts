import { expect, test } from 'vitest';
import { json } from '../support/scripted-upstream.ts';
import { byCookie, CLEARED, cookieIn, expectOver, expectRefused, SESSION, signInWith } from '../sessions/helpers.ts';
import { call, type CallOptions } from '../support/http.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { ODYSSEY } from './library.ts';
import { openLibrary } from './world.ts';

const WARM = ['GET /v1/books', `GET /v1/books/${ODYSSEY}`];

async function openSessions() {
  const env = { SESSIONS: 'true', SECRETS: secret('of-the-library-and-its-sessions') };
  const world = await openLibrary({ env });
  const { gateway, upstream } = world;
  const send = (options: CallOptions) => call(gateway.url, options);
  return {
    ...world,
    send,
    by: (cookie: string, options: CallOptions) => send(byCookie(cookie, options)),
    /** Until the upstream was asked for all that is read in the background. */
    warm: () => Promise.all(WARM.map((at) => upstream.waitForCalls(1, at))),
  };
}

const who = () => ({ reader: 'penelope', password: secret('password') });

test('a login of the library begins a session, whose first overview finds what it reads', async () => {
  const { by, send, warm, asked, token, gateway } = await openSessions();
  const answer = await send(signInWith('', { path: `${SESSION}/enter`, body: who() }));
  expect(answer).toMatchObject({ status: 201, json: { authenticated: true } });
  await warm();
  const overview = await by(cookieIn(answer), { path: '/bff/v1/shelf' });
  expect(overview).toMatchObject({ status: 200, json: { data: { books: { count: 2 } } } });
  const one = await by(cookieIn(answer), { path: `/v1/books/${ODYSSEY}` });
  expect(one.headers).toMatchObject({ vary: 'Authorization, Cookie', 'cache-status': 'portico; hit; ttl=60' });
  expect(asked()).toEqual(['POST /v1/login', ...WARM]);
  expect(answer.text).not.toContain(token);
  expect(leaksIn(gateway.lines.map((line) => JSON.stringify(line)).join('\n'))).toEqual([]);
});

test('a key begins one once the upstream has answered a read with it', async () => {
  const { by, send, warm, token, asked } = await openSessions();
  expectRefused(await send(signInWith('a-stranger')), { status: 401, code: 'unauthenticated', isCleared: false });
  expect(asked()).toEqual(['GET /v1/books']);
  const answer = await send(signInWith(token));
  await warm();
  const cookie = cookieIn(answer);
  expect((await by(cookie, { path: SESSION })).json).toEqual(answer.json);
  const lent = await by(cookie, { path: `/v1/books/${ODYSSEY}/loans`, body: { weeks: 3 } });
  expect(lent.status).toBe(201);
  expect((await by(cookie, { path: `/v1/books/${ODYSSEY}` })).json).toMatchObject({ on_loan: true });
});

test('a session that has ended reads nothing', async () => {
  const { by, send, warm, token, asked } = await openSessions();
  const cookie = cookieIn(await send(signInWith(token)));
  await warm();
  const gone = await by(cookie, { path: SESSION, method: 'DELETE' });
  expect({ status: gone.status, cookies: gone.cookies }).toEqual({ status: 204, cookies: [CLEARED] });
  const before = asked().length;
  expectOver(await by(cookie, { path: '/v1/books' }));
  expectOver(await by(cookie, { path: SESSION }));
  expect(asked()).toHaveLength(before);
  expect((await send({ path: SESSION })).json).toEqual({ authenticated: false });
});

test('a login that the library refuses, or that gives no token, begins none', async () => {
  const { send, upstream, asked } = await openSessions();
  const login = () => send(signInWith('', { path: `${SESSION}/enter`, body: who() }));

  upstream.on('POST /v1/login', json(403, { code: 'unknown_reader' }), json(200, { token: 'of another name' }));
  expectRefused(await login(), { status: 403, code: 'unknown_reader', isCleared: false });
  expectRefused(await login(), { status: 502, code: 'upstream_bad_response', isCleared: false });
  expect((await send({ path: `${SESSION}/login`, body: who() })).status).toBe(404);
  expect(asked()).toHaveLength(2);
});
