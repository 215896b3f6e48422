import { describe, expect, test } from 'vitest';
import { legsOf } from '../overviews/helpers.ts';
import { allOverviews } from '../support/account-api.ts';
import { expectCommonHeaders } from '../http/problem.ts';
import { exampleRequest } from '../support/examples.ts';
import type { CallOptions, TextAnswer } from '../support/http.ts';
import { callOf, goodAnswer, tokenOf } from '../support/marked.ts';
import { barrier, bytes, hold, json, perCall, reply, reset } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import {
  byCookie,
  cookieIn,
  DAY,
  expectRefused,
  isCallOf,
  NAME,
  openSessions,
  overviewPaths,
  OWN_PAGE,
  SESSION,
  type SessionWorld,
  signInWith,
  WARM_CALLS,
} from './helpers.ts';

const SUBSCRIPTION = '/api/v2/subscription/';
const LOOK = { path: SESSION } as const;
const MAX_TOKEN = 2_900;

const longToken = (length: number) => secret('long').padEnd(length, 'x');

/** What the account overview reads of the upstream, as the contract has it. */
const WARM = allOverviews
  .slice(0, 1)
  .flatMap(legsOf)
  .map(({ path }) => `GET ${path}`)
  .toSorted();

const targetsOf = ({ upstream }: SessionWorld, token: string) =>
  upstream
    .callsTo(isCallOf(token))
    .map(({ method, target }) => `${method} ${target}`)
    .toSorted();

/** An answer that begins a session, letter by letter, and no token in it. */
function expectBegun(answer: TextAnswer, { clock }: SessionWorld, token: string): { account: string } {
  expect(answer.status).toBe(201);
  const { 'set-cookie': line, ...headers } = answer.headers;
  expectCommonHeaders({ ...answer, headers });
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store' });
  const body = answer.json as { account: string };
  expect(Object.keys(body)).toEqual(['authenticated', 'expires_at', 'account']);
  expect(body).toEqual({
    authenticated: true,
    expires_at: new Date(clock.wall() + 7 * DAY * 1000).toISOString(),
    account: expect.stringMatching(/^[\w-]{16,}$/),
  });
  expect(answer.cookies).toHaveLength(1);
  expect(line).toMatch(
    /^__Host-Http-portico=[A-Za-z0-9_-]+; Max-Age=604800; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
  );
  expect(`${answer.text}${JSON.stringify(answer.headers)}`).not.toContain(token);
  expect(Buffer.from(cookieIn(answer).slice(NAME.length + 1), 'base64url').toString('latin1')).not.toContain(token);
  return body;
}

describe('a sign-in with a key', () => {
  test('is 201, and the session is what it says', async () => {
    const world = await openSessions();
    const answer = await world.call(signInWith(world.token));
    expectBegun(answer, world, world.token);
    const look = await world.by(cookieIn(answer), LOOK);
    expect([look.status, look.text]).toEqual([200, answer.text]);
    expect(look.headers['cache-control']).toBe('no-store');
    expect(look.cookies).toEqual([]);
  });

  test('gives the same account each time, and another to another key', async () => {
    const world = await openSessions();
    const accountOf = async (token: string) => expectBegun(await world.call(signInWith(token)), world, token).account;
    const first = await accountOf(world.token);
    world.advance(3 * DAY);
    expect(await accountOf(world.token)).toBe(first);
    expect(await accountOf(secret())).not.toBe(first);
  });

  test.for([1, 2, 100, 2_897, 2_898, 2_899, MAX_TOKEN])('of %i bytes fits into a cookie', async (length) => {
    const world = await openSessions();
    const token = length < 50 ? 'k'.repeat(length) : longToken(length);
    const answer = await world.call(signInWith(token));
    if (length > 50) expectBegun(answer, world, token);
    const cookie = cookieIn(answer);
    expect(cookie.length).toBeLessThanOrEqual(4_096);
    await world.askBy(cookie, 'getApiKey');
    expect(world.upstream.callsTo(callOf('getApiKey')).map(tokenOf)).toEqual([token]);
  });

  test('fits with the largest epoch too', async () => {
    const world = await openSessions();
    const token = longToken(MAX_TOKEN);
    await world.by(await world.signIn(token), { method: 'DELETE', path: `${SESSION}?everywhere=true` });
    expect((await world.signIn(token)).length).toBeLessThanOrEqual(4_096);
  });

  test('asks the upstream, though there is a copy', async () => {
    const world = await openSessions();
    await world.ask('getSubscription');
    const calls = await world.sent(() => world.signIn());
    expect(calls.filter((one) => one === callOf('getSubscription'))).toHaveLength(1);
  });

  test.for([
    ['401', json(401, { detail: 'Invalid token.' }), 401, 'unauthenticated'],
    ['403', json(403, { detail: 'No.' }), 403, 'forbidden'],
    ['404', json(404, { detail: 'No.' }), 404, 'not_found'],
    ['429', json(429, { detail: 'Slower.' }, { 'Retry-After': '7' }), 429, 'rate_limited'],
    ['500', json(500, 'x'), 502, 'upstream_bad_response'],
    ['something unreadable', json(200, '{"id":'), 502, 'upstream_bad_response'],
    ['a redirect', json(302, '', { Location: 'https://evil.example/' }), 502, 'upstream_bad_response'],
    ['nothing', reset(), 502, 'upstream_unreachable'],
  ] as const)('that the upstream answers with %s is no session, copy or not', async ([, step, status, code]) => {
    const world = await openSessions();
    await world.ask('getSubscription'); // a copy, which does not prove it
    world.upstream.on(callOf('getSubscription'), step);
    const calls = await world.sent(async () =>
      expectRefused(await world.call(signInWith(world.token)), { status, code, isCleared: false }),
    );
    expect(new Set(calls)).toEqual(new Set([callOf('getSubscription')])); // and nothing is read in the background
  });

  test('by one who has a header as well is his who is in the body', async () => {
    const world = await openSessions();
    const answer = await world.call(signInWith(world.token, { token: secret() }));
    expectBegun(answer, world, world.token);
    await world.askBy(cookieIn(answer), 'getApiKey');
    expect(world.upstream.callsTo(callOf('getApiKey')).map(tokenOf)).toEqual([world.token]);
  });

  test('through a cookie that cannot be opened replaces it', async () => {
    const world = await openSessions();
    for (const Cookie of [`${NAME}=bad`, `${NAME}=`, `${NAME}=a; ${NAME}=b`])
      expectBegun(await world.call(signInWith(world.token, { headers: { ...OWN_PAGE, Cookie } })), world, world.token);
  });
});

describe('a body that is no key', () => {
  const BODIES: Readonly<Record<string, unknown>> = {
    'of 2,901 bytes': { token: longToken(MAX_TOKEN + 1) },
    'with letters beyond ASCII': { token: 'schlüssel' },
    'with a space': { token: 'a b' },
    'with a line break': { token: 'a\r\nX: y' },
    'that is empty': { token: '' },
    'that is a number': { token: 1 },
    'that is null': { token: null },
    'that is a list': { token: ['x'] },
    'without the member': {},
    'with another member': { token: 'x', remember: true },
    'with `__proto__`': '{"token":"x","__proto__":{"a":1}}',
    'that is a text': '"x"',
    'that is a list of all': [],
  };

  test.for(Object.entries(BODIES))('%s is 400 `validation_failed`, and nothing is sent', async ([, body]) => {
    const { call, sent } = await openSessions();
    const calls = await sent(async () => {
      const answer = await call(signInWith('', { body }));
      const { errors } = expectRefused(answer, { status: 400, code: 'validation_failed', isCleared: false });
      expect(errors.length).toBeGreaterThan(0);
    });
    expect(calls).toEqual([]);
  });

  test.for(['', '{', '{"token":"x"', '{"token":"x"}}', "{'token':'x'}", new Uint8Array([123, 255, 125])])(
    'and no JSON (%o) is 400 `malformed_json`',
    async (body) => {
      const { call, sent } = await openSessions();
      const headers = { ...OWN_PAGE, 'content-type': 'application/json' };
      const calls = await sent(async () => {
        const answer = await call({ method: 'POST', path: SESSION, headers, body });
        expectRefused(answer, { status: 400, code: 'malformed_json', isCleared: false });
      });
      expect(calls).toEqual([]);
    },
  );

  test.for(['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=utf-16', ''])(
    'of the type `%s` is 415',
    async (type) => {
      const { call, sent, token } = await openSessions();
      const calls = await sent(async () => {
        for (const path of ['', '/login', '/register']) {
          const headers = { ...OWN_PAGE, 'content-type': type };
          const answer = await call(signInWith(token, { path: `${SESSION}${path}`, headers }));
          expectRefused(answer, { status: 415, code: 'unsupported_media_type', isCleared: false });
        }
      });
      expect(calls).toEqual([]);
    },
  );

  test('is 413 where it is too large', async () => {
    const { call } = await openSessions();
    const answer = await call(signInWith('x'.repeat(70_000)));
    expectRefused(answer, { status: 413, code: 'payload_too_large', isCleared: false });
  });
});

const SOCIAL = [
  ['login', 'loginSocial'],
  ['register', 'registerSocial'],
] as const;

describe.each(SOCIAL)('%s', (way, operation) => {
  const { body } = exampleRequest(operation);
  const request = (more: Partial<CallOptions> = {}): CallOptions => {
    const { headers, ...others } = more;
    return { path: `${SESSION}/${way}`, body, headers: { ...OWN_PAGE, ...headers }, ...others };
  };
  const open = async (env: Record<string, string> = {}, token = secret()) => {
    const world = await openSessions(env);
    world.upstream.on(callOf(operation), json(200, { token, email: 'x' }));
    return { ...world, given: token };
  };

  test('begins a session with the token, which nobody gets to see', async () => {
    const world = await open();
    const answer = await world.call(request());
    expectBegun(answer, world, world.given);
    await world.upstream.waitForCalls(WARM_CALLS, isCallOf(world.given));
    await world.askBy(cookieIn(answer), 'getApiKey');
    expect(world.upstream.callsTo(callOf('getApiKey')).map(tokenOf)).toEqual([world.given]);
    const [sent, ...others] = world.upstream.callsTo(callOf(operation));
    expect(others).toEqual([]);
    expect([sent!.body, sent!.headers['authorization'], sent!.headers['cookie']]).toEqual([body, undefined, undefined]);
  });

  test('is checked as at its own path', async () => {
    const { call, sent } = await open();
    const calls = await sent(async () => {
      for (const [bad, code] of [
        ['{', 'malformed_json'],
        ['{}', 'validation_failed'],
        ['', 'malformed_json'],
      ] as const)
        expectRefused(await call(request({ method: 'POST', body: bad })), { status: 400, code, isCleared: false });
    });
    expect(calls).toEqual([]);
  });

  test.for([
    [400, '[{"message":"No.","code":"invalid_code"}]', 'invalid_code'],
    [401, '{"detail":"No."}', 'unauthenticated'],
    [403, '{"detail":"No."}', 'forbidden'],
  ] as const)('a %i of the upstream is one here', async ([status, text, code]) => {
    const { call, upstream, sent } = await open();
    upstream.on(callOf(operation), json(status, text));
    const calls = await sent(async () => expectRefused(await call(request()), { status, code, isCleared: false }));
    expect(calls).toEqual([callOf(operation)]);
  });

  test('an answer that is lost is of unknown outcome', async () => {
    const { call, upstream } = await open();
    upstream.on(callOf(operation), reset());
    const answer = await call(request());
    const problem = expectRefused(answer, { status: 502, code: 'upstream_unreachable', isCleared: false });
    expect(problem.outcome).toBe('unknown');
  });

  test.for(['{}', '{"token":null}', '{"token":""}', '{"token":"a b"}', '{"token":["x"]}', '[]', '"text"'])(
    'a token that is none (%s) is 502',
    async (text) => {
      const { call, upstream } = await open();
      upstream.on(callOf(operation), json(200, text));
      expectRefused(await call(request()), { status: 502, code: 'upstream_bad_response', isCleared: false });
    },
  );

  test('a token that does not fit into a cookie is 502, and the problem does not tell it', async () => {
    const { call } = await open({}, longToken(MAX_TOKEN + 1));
    expectRefused(await call(request()), { status: 502, code: 'upstream_bad_response', isCleared: false });
  });

  test('a key sends it once, and begins a session of the same account each time', async () => {
    const world = await open();
    const keyed = () => world.call(request({ headers: { 'Idempotency-Key': 'k' } }));
    const [first, again] = [await keyed(), await keyed()];
    const { account } = expectBegun(first, world, world.given);
    expect(again.json).toMatchObject({ account });
    for (const answer of [first, again])
      expect((await world.by(cookieIn(answer), LOOK)).json).toMatchObject({ authenticated: true });
    expect(world.upstream.callsTo(callOf(operation))).toHaveLength(1);
    await world.upstream.waitForCalls(WARM_CALLS, isCallOf(world.given));
  });

  test('a key that is none is 400', async () => {
    const { call, sent } = await open();
    const calls = await sent(async () => {
      const answer = await call(request({ headers: { 'Idempotency-Key': 'a b' } }));
      expectRefused(answer, { status: 400, code: 'validation_failed', isCleared: false });
    });
    expect(calls).toEqual([]);
  });
});

describe('the limit of an address', () => {
  test('is twenty in a minute, of all three ways together, and the upstream hears of no more', async () => {
    const world = await openSessions({ RATE_LIMIT_PER_MINUTE: '600' });
    world.upstream.on(({ path }) => path.includes('/social/'), json(400, { detail: 'No.' }));
    world.upstream.on(callOf('getSubscription'), json(401, { detail: 'No.' }));
    const statuses: number[] = [];
    const calls = await world.sent(async () => {
      for (let n = 0; n < 24; n++) {
        const [way, operation] = SOCIAL[n % 2]!;
        const { body } = exampleRequest(operation);
        const request = n % 3 === 0 ? signInWith(secret()) : { path: `${SESSION}/${way}`, body, headers: OWN_PAGE };
        statuses.push((await world.call(request)).status);
      }
    });
    expect(statuses.slice(0, 20)).not.toContain(429);
    expect(statuses.slice(20)).toEqual([429, 429, 429, 429]);
    expect(calls).toHaveLength(20);
    const refused = await world.call(signInWith(world.token));
    const { retry_after: after } = expectRefused(refused, { status: 429, code: 'rate_limited', isCleared: false });
    expect(after).toBeGreaterThanOrEqual(1);
    world.advance(after!);
    world.upstream.on(
      callOf('getSubscription'),
      perCall((to) => goodAnswer(to, 1)),
    );
    await world.signIn();
  });

  test('counts what is refused for its body, and not what is refused for its origin', async () => {
    const { call } = await openSessions({ RATE_LIMIT_PER_MINUTE: '600' });
    for (let n = 0; n < 30; n++)
      expect((await call(signInWith('x', { headers: { 'Sec-Fetch-Site': 'cross-site' } }))).status).toBe(403);
    for (let n = 0; n < 20; n++) expect((await call(signInWith(''))).status).toBe(400);
    expect((await call(signInWith(''))).status).toBe(429);
  });
});

describe('a look at the session', () => {
  test('without one says so, with or without `Authorization`', async () => {
    const { call, token, sent } = await openSessions();
    const calls = await sent(async () => {
      for (const request of [LOOK, { ...LOOK, token }]) {
        const answer = await call(request);
        expect([answer.status, answer.text, answer.cookies]).toEqual([200, '{"authenticated":false}', []]);
        expect(answer.headers['cache-control']).toBe('no-store');
      }
    });
    expect(calls).toEqual([]);
  });

  test('costs the upstream nothing', async () => {
    const { by, signIn, sent } = await openSessions();
    const cookie = await signIn();
    expect(await sent(() => by(cookie, LOOK))).toEqual([]);
  });

  test('tells until when it is', async () => {
    const { by, signIn, advance, clock } = await openSessions();
    const cookie = await signIn();
    const ends = new Date(clock.wall() + 7 * DAY * 1000).toISOString();
    for (let day = 0; day < 6; day++) {
      advance(DAY);
      expect((await by(cookie, LOOK)).json).toMatchObject({ authenticated: true, expires_at: ends });
    }
  });
});

test('without sessions there is nothing at their paths, and cookies mean nothing', async () => {
  const { by, call, sent } = await openSessions({ SESSIONS: 'false' });
  const calls = await sent(async () => {
    for (const path of [SESSION, `${SESSION}/login`, `${SESSION}/register`])
      for (const method of ['GET', 'POST', 'DELETE'])
        expectRefused(await call({ method, path, headers: OWN_PAGE }), {
          status: 404,
          code: 'unknown_endpoint',
          isCleared: false,
        });
    const answer = await by(`${NAME}=x`, { path: SUBSCRIPTION });
    expectRefused(answer, { status: 401, code: 'unauthenticated', isCleared: false });
  });
  expect(calls).toEqual([]);
});

test('other methods are 405', async () => {
  const { call } = await openSessions();
  const allowed = async (method: string, path: string) => {
    const answer = await call({ method, path, headers: OWN_PAGE });
    return [answer.status, answer.headers['allow']];
  };
  expect(await allowed('PATCH', SESSION)).toEqual([405, 'GET, HEAD, POST, DELETE']);
  for (const way of ['login', 'register']) expect(await allowed('GET', `${SESSION}/${way}`)).toEqual([405, 'POST']);
});

/** One held call, the others good. */
const held = (world: SessionWorld, target: string) => {
  const gate = barrier();
  world.upstream.once(
    `GET ${target}`,
    reply(
      hold(gate),
      perCall((to) => goodAnswer(to, 'held')),
    ),
  );
  return gate;
};

describe('the warm start', () => {
  test('reads what the account overview wants, each once, and the overview finds it', async () => {
    const world = await openSessions();
    const cookie = await world.signIn();
    expect(targetsOf(world, world.token)).toEqual(WARM);
    const overview = await world.by(cookie, { path: overviewPaths[0]! });
    expect(overview.json).toMatchObject({ meta: { complete: true } });
    expect(targetsOf(world, world.token)).toEqual(WARM);
  });

  test('asks for the others only after the 200 of the first', async () => {
    const world = await openSessions();
    const gate = held(world, SUBSCRIPTION);
    const signingIn = world.call(signInWith(world.token));
    await gate.reached;
    expect(targetsOf(world, world.token)).toEqual([`GET ${SUBSCRIPTION}`]);
    gate.release();
    expect((await signingIn).status).toBe(201);
    await world.upstream.waitForCalls(WARM_CALLS, isCallOf(world.token));
    expect(targetsOf(world, world.token)).toEqual(WARM);
  });

  test.for(WARM.map((one) => one.slice(4)).filter((path) => path !== SUBSCRIPTION))(
    'an overview that comes while %s is under way joins it',
    async (target) => {
      const world = await openSessions();
      const gate = held(world, target);
      const cookie = await world.signIn();
      await gate.reached;
      const overview = world.by(cookie, { path: overviewPaths[0]! });
      await world.store.lookups.next();
      gate.release();
      expect((await overview).json).toMatchObject({ meta: { complete: true } });
      expect(targetsOf(world, world.token)).toEqual(WARM);
    },
  );

  test.for(SOCIAL)(
    'after %s does not wait for the first read, and an overview meanwhile joins it',
    async ([way, operation]) => {
      const world = await openSessions();
      world.upstream.on(callOf(operation), json(200, { token: world.token }));
      const gate = held(world, SUBSCRIPTION);
      const { body } = exampleRequest(operation);
      const answer = await world.call({ path: `${SESSION}/${way}`, body, headers: OWN_PAGE });
      expect(answer.status).toBe(201);
      await gate.reached;
      const overview = world.by(cookieIn(answer), { path: overviewPaths[0]! });
      await world.upstream.waitForCalls(WARM_CALLS, isCallOf(world.token)); // the overview asks for the others itself
      gate.release();
      expect((await overview).json).toMatchObject({ meta: { complete: true } });
      expect(targetsOf(world, world.token)).toEqual(WARM);
      await world.gateway.close();
      expect(targetsOf(world, world.token)).toEqual(WARM); // nor does the warm start ask again
    },
  );

  test.for(SOCIAL)(
    'after %s that is refused its first read asks for nothing more, and the session is there',
    async ([way, operation]) => {
      const world = await openSessions();
      world.upstream.on(callOf(operation), json(200, { token: world.token }));
      world.upstream.once(callOf('getSubscription'), json(403, { detail: 'No.' }));
      const { body } = exampleRequest(operation);
      const answer = await world.call({ path: `${SESSION}/${way}`, body, headers: OWN_PAGE });
      const refused = world.store.refusals.total > 0 ? undefined : world.store.refusals.next();
      await refused;
      expect((await world.by(cookieIn(answer), LOOK)).json).toMatchObject({ authenticated: true });
      expect(targetsOf(world, world.token)).toEqual([`GET ${SUBSCRIPTION}`]);
    },
  );

  test('a leg that fails in the background harms nobody', async () => {
    const world = await openSessions();
    world.upstream.once(callOf('listNotifications'), bytes('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));
    const cookie = await world.signIn();
    expect((await world.by(cookie, { path: overviewPaths[0]! })).status).toBe(200);
    expect(world.gateway.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('a client who leaves before the answer cancels the read, and nothing follows', async () => {
    const world = await openSessions();
    const gate = held(world, SUBSCRIPTION);
    const leaving = new AbortController();
    const signingIn = world.call(signInWith(world.token, { signal: leaving.signal })).catch(() => 'left');
    await gate.reached;
    leaving.abort();
    expect(await signingIn).toBe('left');
    const [call] = world.upstream.callsTo(isCallOf(world.token));
    await world.upstream.disconnected(call!);
    expect(targetsOf(world, world.token)).toEqual([`GET ${SUBSCRIPTION}`]);
  });

  test('is not counted among the requests of the account', async () => {
    const world = await openSessions({ RATE_LIMIT_PER_MINUTE: '2' });
    const cookie = await world.signIn();
    const statuses = [];
    for (let n = 0; n < 3; n++) statuses.push((await world.call(byCookie(cookie, LOOK))).status);
    expect(statuses).toEqual([200, 200, 429]);
  });
});
