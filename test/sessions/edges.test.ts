import { describe, expect, test, vi } from 'vitest';
import { base64Url, Sealing } from '../../src/core/crypto.ts';
import { LISTED } from '../http/cors.ts';
import { exampleRequest } from '../support/examples.ts';
import { barrier } from '../support/barrier.ts';
import { START_MS } from '../support/clock.ts';
import { secret } from '../support/secrets.ts';
import { callOf } from '../support/marked.ts';
import { requestText } from '../support/raw-client.ts';
import { hold, json, reply } from '../support/scripted-upstream.ts';
import {
  ask,
  byCookie,
  cookieIn,
  DAY,
  expectRefused,
  NAME,
  openSessions,
  OWN_PAGE,
  SESSION,
  signInWith,
} from './helpers.ts';
import { openShared } from './stores.ts';

const LOOK = { path: SESSION } as const;
const EVERYWHERE = { method: 'DELETE', path: `${SESSION}?everywhere=true` } as const;

test('a `Cookie` that is mostly blanks takes no time', async () => {
  const { raw, signIn } = await openSessions();
  const good = await signIn();
  for (const blank of [' ', '\t']) {
    const cookies = [`a=1${blank.repeat(15_000)}b`, `a=1;${blank.repeat(7_000)}${good}${blank.repeat(7_000)}`];
    const begin = performance.now();
    for (const cookie of cookies)
      for (let times = 0; times < 20; times++) {
        const { status } = await raw(requestText({ target: SESSION, headers: [['Cookie', cookie]] }));
        expect(status).toBe(200);
      }
    expect(performance.now() - begin).toBeLessThan(2_000); // each took 250 ms, of everybody's time
  }
});

describe('a cookie', () => {
  test.for([0, 1, 2])('is 401 with any other last character (%i)', async (more) => {
    const { by, signIn } = await openSessions();
    const cookie = await signIn(`${secret()}${'x'.repeat(more)}`);
    const opened: string[] = [];
    for (const last of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_') {
      const changed = `${cookie.slice(0, -1)}${last}`;
      if (changed === cookie) continue;
      const { status } = await by(changed, { path: SESSION });
      if (status !== 401) opened.push(`${status} with ${last} for ${cookie.at(-1)}`);
    }
    expect(opened).toEqual([]);
  });
});

test.for(['anything', 'Same-Origin', 'same-origin, same-origin', ''])(
  'a listed origin does not make up for a site `%s`, which the contract does not know',
  async (site) => {
    const { call, signIn } = await openSessions({ ALLOWED_ORIGINS: LISTED });
    const headers = { Cookie: await signIn(), 'Sec-Fetch-Site': site, Origin: LISTED };
    expect((await call({ ...exampleRequest('createApiKey'), headers })).status).toBe(403);
  },
);

describe('epochs', () => {
  test('an instance that has seen an older `everywhere` does not refuse a newer session while the store is away', async () => {
    const world = await openShared();
    await world.by(await world.signIn(), EVERYWHERE);
    await ask(world.other, byCookie(await world.signIn(), EVERYWHERE));
    const cookie = await world.signIn();
    expect((await world.by(cookie, LOOK)).status).toBe(200);
    world.away();
    const answer = await world.by(cookie, LOOK);
    world.back();
    expect([answer.status, answer.cookies]).toEqual([200, []]);
  });

  test('no session begins while the store is away, since nobody knows its epoch', async () => {
    const world = await openShared();
    world.away();
    const token = secret();
    const headers = { ...OWN_PAGE, 'content-type': 'application/json' };
    const answer = await world.call({ method: 'POST', path: SESSION, headers, body: JSON.stringify({ token }) });
    world.back();
    expect([answer.status, answer.json]).toMatchObject([503, { code: 'store_unavailable' }]);
  });

  test('`everywhere` holds on its own instance until the store has heard of it', async () => {
    const world = await openShared();
    const cookie = await world.signIn();
    world.away('swap');
    expect((await world.by(cookie, EVERYWHERE)).status).toBe(503);
    const read = await world.by(cookie, LOOK);
    const write = await world.askBy(cookie, 'createApiKey');
    world.back();
    expect([read.status, write.status]).toEqual([401, 401]);
  });
});

test('an `everywhere` that is sent again late brings back nothing that was ended since', async () => {
  const world = await openShared();
  const { shelf, accounts } = world;
  const again = barrier();
  // It is carried out, but the reply is lost.
  shelf.after = (call) =>
    call === 'swap' && shelf.times('swap') === 1 ? Promise.reject(new Error('lost')) : undefined;
  shelf.before = (call) => (call === 'swap' && shelf.times('swap') > 1 ? again.arrive() : undefined);
  const look = async (cookie: string) => (await ask(world.other, byCookie(cookie, LOOK))).status;
  const first = await world.signIn();
  const out = world.by(first, EVERYWHERE);
  await again.reached;
  world.advance(2);
  expect((await out).status).toBe(503);
  const second = await world.signIn();
  expect([await look(first), await look(second)]).toEqual([401, 200]);
  expect((await ask(world.other, byCookie(second, EVERYWHERE))).status).toBe(204);
  const third = cookieIn(await ask(world.other, signInWith(world.token)));
  expect([await look(second), await look(third)]).toEqual([401, 200]);
  again.release();
  await vi.waitFor(() => expect(accounts.pending).toBe(0));
  expect([await look(first), await look(second), await look(third)]).toEqual([401, 401, 200]);
});

test('a cookie of a release that had no instants for epochs is 401', async () => {
  const { secrets, upstream, token, by } = await openSessions();
  const now = Math.floor(START_MS / 1000);
  const sealing = new Sealing([secrets], `portico session ${upstream.url}/`);
  const sealed = await sealing.seal(NAME, `${crypto.randomUUID()} 1 ${now} ${now + DAY} ${token}`);
  expect((await by(`${NAME}=${base64Url(sealed.buffer)}`, LOOK)).status).toBe(401);
});

test('a 401 of the upstream ends every session that has waited for the answer', async () => {
  const world = await openSessions();
  const [one, other] = [await world.signIn(), await world.signIn()];
  world.advance(2 * 3600);
  const gate = barrier();
  world.upstream.once(callOf('listTransactions'), reply(hold(gate), json(401, { detail: 'Invalid token.' })));
  const first = world.askBy(one, 'listTransactions');
  await gate.reached;
  const joined = world.store.lookups.next();
  const second = world.askBy(other, 'listTransactions');
  await joined;
  gate.release();
  expect([(await first).status, (await second).status]).toEqual([401, 401]);
  expect([(await world.by(one, LOOK)).status, (await world.by(other, LOOK)).status]).toEqual([401, 401]);
});

test('a 401 to a read that somebody with the key in a header has begun ends the session that has waited for it', async () => {
  const world = await openSessions();
  const cookie = await world.signIn();
  world.advance(2 * 3600);
  const gate = barrier();
  world.upstream.once(callOf('listTransactions'), reply(hold(gate), json(401, { detail: 'Invalid token.' })));
  const first = world.ask('listTransactions');
  await gate.reached;
  const joined = world.store.lookups.next();
  const second = world.askBy(cookie, 'listTransactions');
  await joined;
  gate.release();
  expect([(await first).status, (await second).status]).toEqual([401, 401]);
  expect((await world.by(cookie, LOOK)).status).toBe(401);
});

test.for(['null', '[]', '"text"', '1', '{}', '{"token":null}', '{"token":""}', '{"token":"a b"}'])(
  'a login that the upstream answers with %s is 502, never 500',
  async (text) => {
    const world = await openSessions();
    world.upstream.on(callOf('loginSocial'), json(200, text));
    const { body } = exampleRequest('loginSocial');
    const answer = await world.call({ path: `${SESSION}/login`, body, headers: OWN_PAGE });
    expectRefused(answer, { status: 502, code: 'upstream_bad_response', isCleared: false });
  },
);

test('a sign-out is not refused because the account has used up its requests', async () => {
  const world = await openSessions({ RATE_LIMIT_PER_MINUTE: '1' });
  const cookie = await world.signIn();
  await world.askBy(cookie, 'getApiKey');
  expect((await world.by(cookie, { method: 'DELETE', path: SESSION })).status).toBe(204);
});
