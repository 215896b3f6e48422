import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../src/core/errors.ts';
import type { Exchange, Exchanged } from '../../src/upstream/hooks.ts';
import { barrier, hold, json, perCall, reply } from '../support/scripted-upstream.ts';
import { expectProblem } from '../http/problem.ts';
import { gist, openShop } from '../idempotency/helpers.ts';
import { openOverviews, overviewTable } from '../overviews/helpers.ts';
import { openSessions } from '../sessions/helpers.ts';
import { bodyOf, callOf, goodAnswer } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { cachedIds, readIds, socialIds, writeIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

/** Exchanges `key` for `key.1`, `key.2` and so on, and notes for whom. */
function counting(forSeconds?: number, before: (key: string) => Promise<unknown> | undefined = () => undefined) {
  const keys: string[] = [];
  const credential: Exchange = async (key) => {
    const count = keys.push(key);
    await before(key);
    return { headers: { 'X-Token': `${key}.${count}` }, ...(forSeconds !== undefined && { forSeconds }) };
  };
  return { keys, credential };
}

const keeping: Exchange = (key) => ({ headers: { Authorization: `Token ${key}` }, forSeconds: 60 });

const tokensIn = ({ upstream }: Pick<World, 'upstream'>) => upstream.calls.map(({ headers }) => headers['x-token']);

const faultsIn = ({ gateway }: Pick<World, 'gateway'>) =>
  gateway.lines.filter(({ msg }) => /^internal error$|^the hook /.test(msg));

const UNCACHED = readIds.find((id) => !cachedIds.includes(id) && !socialIds.includes(id)) ?? 'getPendingPayment';

describe('how often a key is exchanged', () => {
  test('never for an answer from the cache', async () => {
    const { keys, credential } = counting();
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    await world.ask('getSubscription');
    await world.ask('getSubscription');
    expect([keys, world.upstream.calls.length]).toEqual([[world.token], 1]);
  });

  test('once for each call, if it says nothing of a time', async () => {
    const { keys, credential } = counting();
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    for (let asked = 0; asked < 3; asked++) await world.ask(UNCACHED);
    expect(tokensIn(world)).toEqual([1, 2, 3].map((count) => `${world.token}.${count}`));
    expect(keys).toHaveLength(3);
  });

  test('each of several calls at the same time has its own, if it says nothing of a time', async () => {
    const both = barrier();
    const { credential } = counting(undefined, () => both.arrive());
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    const asked = [world.ask('getSubscription'), world.ask('getReferralConfig')];
    await both.reached;
    both.release();
    for (const { status } of await Promise.all(asked)) expect(status).toBe(200);
    expect(new Set(tokensIn(world)).size).toBe(2);
  });

  test('once for a call that is tried again', async () => {
    const { keys, credential } = counting();
    const world = await openWorld({}, { hooks: { credential } });
    world.upstream.on(callOf('getSubscription'), json(503), json(503), json(200, bodyOf('getSubscription', 1)));
    expect((await world.ask('getSubscription')).status).toBe(200);
    expect(tokensIn(world)).toEqual([1, 1, 1].map((count) => `${world.token}.${count}`));
    expect(keys).toHaveLength(1);
  });

  test('once for as long as it says, for all operations of the account', async () => {
    const { keys, credential } = counting(60);
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    for (const id of [...readIds, ...writeIds]) await world.ask(id);
    expect(keys).toEqual([world.token]);
    world.advance(59.999);
    await world.ask(UNCACHED);
    expect(keys).toHaveLength(1);
    world.advance(0.001);
    await world.ask(UNCACHED);
    expect(tokensIn(world).at(-1)).toBe(`${world.token}.2`);
  });

  test('once in 24 hours, whatever it says', async () => {
    const { keys, credential } = counting(Infinity);
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    await world.ask(UNCACHED);
    world.advance(24 * 60 * 60 - 1);
    await world.ask(UNCACHED);
    expect(keys).toHaveLength(1);
    world.advance(1);
    await world.ask(UNCACHED);
    expect(keys).toHaveLength(2);
  });

  test.each(overviewTable)('once for all sections of %s', async (path) => {
    const { keys, credential } = counting(60);
    const world = await openOverviews({}, { hooks: { credential } });
    expect((await world.get(path)).body.meta.complete).toBe(true);
    expect(keys).toEqual([world.token]);
    expect(new Set(tokensIn(world))).toEqual(new Set([`${world.token}.1`]));
  });
});

describe('an exchange that several wait for', () => {
  test('is aborted when the last one has left', async () => {
    const aborted = Promise.withResolvers<unknown>();
    const asked = barrier();
    const credential: Exchange = async (_, { signal }) => {
      signal.addEventListener('abort', () => aborted.resolve(signal.reason));
      void asked.arrive();
      return new Promise<Exchanged>(() => undefined);
    };
    const world = await openWorld({}, { hooks: { credential } });
    const leaving = new AbortController();
    const first = world.ask('getSubscription', { signal: leaving.signal }).catch(() => 'left');
    await asked.reached;
    leaving.abort();
    expect(await first).toBe('left');
    expect(await aborted.promise).toBeInstanceOf(Error);
    expect(world.upstream.calls).toEqual([]);
  });

  test('fails for all of them, is logged once, and is begun anew by the next one', async () => {
    const at = barrier();
    let isBroken = true;
    const { keys, credential: good } = counting(60, () => at.arrive());
    const credential: Exchange = async (key, options) => {
      const made = await good(key, options);
      if (isBroken) throw new TypeError(`no such key: ${key}`);
      return made;
    };
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    const asked = world.call({ path: '/bff/v1/account-overview', token: world.token });
    await at.reached;
    at.release();
    expectProblem(await asked, { status: 502, code: 'upstream_unreachable' });
    expect([keys.length, faultsIn(world).length]).toEqual([1, 1]);
    isBroken = false;
    expect((await world.call({ path: '/bff/v1/account-overview', token: world.token })).status).toBe(200);
  });
});

test('a client that leaves during the exchange cancels its write, whose key is free again', async () => {
  const at = barrier();
  const aborted = Promise.withResolvers<void>();
  let count = 0;
  const credential: Exchange = async (key, { signal }) => {
    signal.addEventListener('abort', () => aborted.resolve());
    if (++count === 1) await at.arrive();
    return { headers: { 'X-Token': key } };
  };
  const shop = await openShop({}, { hooks: { credential } });
  const leaving = new AbortController();
  const left = shop.keyed('purchasePlan', { signal: leaving.signal }).catch(() => 'left');
  await at.reached;
  leaving.abort();
  expect(await left).toBe('left');
  await aborted.promise;
  at.release();
  shop.script('purchasePlan', json(200, bodyOf('purchasePlan', 1)));
  expect((await shop.keyed('purchasePlan')).status).toBe(200);
  expect(shop.upstream.calls).toHaveLength(1);
});

describe('accounts', () => {
  test('each get what their own key was exchanged for, in whatever order the exchanges end', async () => {
    const tokens = Array.from({ length: 6 }, () => secret());
    const gates = new Map(tokens.map((token) => [token, barrier()]));
    const { keys, credential } = counting(60, (key) => gates.get(key)?.arrive());
    const world = await openWorld({}, { hooks: { credential } });
    world.upstream.on(
      () => true,
      perCall((to) => goodAnswer(to, to.headers['x-token']?.split('.')[0] ?? 'none')),
    );
    const asked = tokens.flatMap((token) => [
      world.ask('getSubscription', { token }).then(({ text }) => [token, text] as const),
      world.ask(UNCACHED, { token }).then(({ text }) => [token, text] as const),
    ]);
    await Promise.all([...gates.values()].map((gate) => gate.reached));
    for (const token of tokens.toReversed()) gates.get(token)?.release();
    for (const [token, text] of await Promise.all(asked)) expect(text).toContain(`"x_mark":"${token}"`);
    expect(keys.toSorted()).toEqual(tokens.toSorted());
  });

  test('one whose exchange fails or hangs leaves the others as they are', async () => {
    const [failing, hanging, good] = [secret(), secret(), secret()];
    const hangs = barrier();
    const { credential } = counting(60, (key) => {
      if (key === failing) throw new TypeError('no');
      return key === hanging ? hangs.arrive() : undefined;
    });
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    const hung = world.ask('getSubscription', { token: hanging });
    await hangs.reached;
    expect((await world.ask('getSubscription', { token: failing })).status).toBe(502);
    expect((await world.ask('getSubscription', { token: good })).status).toBe(200);
    hangs.release();
    expect((await hung).status).toBe(200);
    expect(tokensIn(world).map((token) => token?.split('.')[0])).toEqual([good, hanging]);
  });
});

describe('an upstream that says 401', () => {
  test('to a token that was kept gets one more call with another one', async () => {
    const { keys, credential } = counting(60);
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    await world.ask(UNCACHED);
    world.upstream.once(callOf(UNCACHED), json(401));
    expect((await world.ask(UNCACHED)).status).toBe(200);
    expect(tokensIn(world)).toEqual([1, 1, 2].map((count) => `${world.token}.${count}`));
    expect(keys).toHaveLength(2);
  });

  test('to a token that was just made is answered so, and the next request exchanges its key anew', async () => {
    const { keys, credential } = counting(60);
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    world.upstream.once(callOf(UNCACHED), json(401));
    expectProblem(await world.ask(UNCACHED), { status: 401, code: 'unauthenticated' });
    expect(keys).toHaveLength(1);
    expect((await world.ask(UNCACHED)).status).toBe(200);
    expect(tokensIn(world)).toEqual([`${world.token}.1`, `${world.token}.2`]);
  });

  test('to both is answered so: there is no third call', async () => {
    const { keys, credential } = counting(60);
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    await world.ask(UNCACHED);
    world.upstream.on(callOf(UNCACHED), json(401));
    expectProblem(await world.ask(UNCACHED), { status: 401, code: 'unauthenticated' });
    expect([keys.length, tokensIn(world).length]).toEqual([2, 3]);
  });

  test.each(['refused', 'down'])('to a kept token is answered so where the exchange is then %s', async (how) => {
    const { keys, credential } = counting(60, () => {
      if (keys.length > 1) throw how === 'down' ? new Error('down') : GatewayError.of('unauthenticated');
      return undefined;
    });
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    await world.ask('getSubscription');
    world.advance(31); // there is a stale copy now
    world.upstream.once(callOf('getSubscription'), json(503), json(401));
    const answer = await world.ask('getSubscription', { headers: { 'Cache-Control': 'no-cache' } });
    expectProblem(answer, { status: 401, code: 'unauthenticated' });
    expect([keys.length, tokensIn(world).length]).toEqual([2, 3]);
    expect((await world.ask('getSubscription')).status).toBe(how === 'down' ? 502 : 401); // the stale copy is gone
  });

  test('shows neither of the tokens to the client', async () => {
    const tokens = ['a-first-token-of-many', 'a-second-token-of-many'];
    let nth = 0;
    const credential = () => ({ headers: { 'X-Token': tokens[nth++] ?? 'none' }, forSeconds: 60 });
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    await world.ask(UNCACHED);
    world.upstream.once(callOf(UNCACHED), json(401), json(400, { detail: `${tokens.join(' or ')} is no good` }));
    expect((await world.ask(UNCACHED)).json).toMatchObject({ detail: '… or … is no good' });
  });

  test.each(writeIds.filter((id) => !socialIds.includes(id)))('to %s, which did nothing, is the same', async (id) => {
    const { credential } = counting(60);
    const shop = await openShop({}, { hooks: { credential } });
    shop.answerAll();
    await shop.ask(UNCACHED);
    shop.upstream.once(callOf(id), json(401));
    expect((await shop.keyed(id)).status).toBeLessThan(300);
    expect(tokensIn(shop).map((token) => token?.split('.')[1])).toEqual(['1', '1', '2']);
  });

  test('to a kept token ends no session', async () => {
    const world = await openSessions({}, { hooks: { credential: keeping } });
    const cookie = await world.signIn();
    world.upstream.once(callOf(UNCACHED), json(401));
    for (let asked = 0; asked < 2; asked++) expect((await world.askBy(cookie, UNCACHED)).status).toBe(200);
  });

  test('to one account leaves what others have', async () => {
    const other = secret();
    const { keys, credential } = counting(60);
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    await world.ask(UNCACHED, { token: other });
    world.upstream.once(callOf(UNCACHED), json(401));
    expect((await world.ask(UNCACHED)).status).toBe(401);
    expect((await world.ask(UNCACHED, { token: other })).status).toBe(200);
    expect(keys).toEqual([other, world.token]);
  });

  test('to a call with an older token leaves the newer one', async () => {
    const { keys, credential } = counting(60);
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    const late = barrier();
    world.upstream.once(callOf('getSubscription'), reply(hold(late), json(401)));
    const slow = world.ask('getSubscription');
    await late.reached;
    world.upstream.once(callOf(UNCACHED), json(401));
    expect((await world.ask(UNCACHED)).status).toBe(200);
    late.release();
    expect((await slow).status).toBe(401);
    expect((await world.ask(UNCACHED)).status).toBe(200);
    expect(keys).toHaveLength(2);
  });
});

const throwing = (error: unknown): { credential: Exchange } => ({
  credential: () => {
    throw error;
  },
});

describe('an exchange that fails', () => {
  test('with an error of ours is answered with that', async () => {
    const error = GatewayError.of('unauthenticated', { detail: 'Sign in again.' });
    const world = await openWorld({}, { hooks: throwing(error) });
    const answer = await world.ask('getSubscription');
    expectProblem(answer, { status: 401, code: 'unauthenticated' });
    expect([answer.json, faultsIn(world)]).toMatchObject([{ detail: 'Sign in again.' }, []]);
    expect(answer.headers['www-authenticate']).toBe('Token');
  });

  test('with anything else is a 502, whose message nobody sees', async () => {
    const world = await openWorld({}, { hooks: throwing(new TypeError(`bad key ${secret()}`)) });
    const answer = await world.ask('getSubscription');
    expectProblem(answer, { status: 502, code: 'upstream_unreachable' });
    expect(faultsIn(world)).toMatchObject([{ fault: expect.stringMatching(/^TypeError +at /) }]);
    expect(JSON.stringify([answer.text, faultsIn(world)])).not.toContain('bad key');
  });

  test('is no failure of the upstream: the circuit stays closed', async () => {
    let isBroken = true;
    const credential = (key: string) => {
      if (isBroken) throw new Error('down');
      return { headers: { 'X-Token': key } };
    };
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    for (let asked = 0; asked < 25; asked++) expect((await world.ask(UNCACHED, { token: secret() })).status).toBe(502);
    isBroken = false;
    expect((await world.ask(UNCACHED)).status).toBe(200);
    expect(world.upstream.calls).toHaveLength(1);
  });

  const WRONG: readonly (readonly [what: string, given: unknown])[] = [
    ['nothing', undefined],
    ['no headers', {}],
    ['a promise of headers', { headers: Promise.resolve({}) }],

    ['a line break in a value', { headers: { 'X-Token': 'a\r\nX-Other: b' } }],
    ['a line break in a name', { headers: { 'X-Token\r\nX-Other': 'a' } }],
    ['a value beyond ASCII', { headers: { 'X-Token': 'é' } }],
    ['a number', { headers: { 'X-Token': 1 } }],
    ['a header twice', { headers: { 'X-Token': 'a', 'x-token': 'b' } }],
    ['a time that is none', { headers: {}, forSeconds: Number.NaN }],
    ['a time in words', { headers: {}, forSeconds: '60' }],
    ...['Host', 'Content-Length', 'Transfer-Encoding', 'Connection', 'TE', 'Upgrade', 'Trailer', 'Keep-Alive'].map(
      (name) => [name, { headers: { [name]: 'x' } }] as const,
    ),
    ...['Proxy-Authorization', 'Proxy-Anything', 'Cookie', 'Expect', 'Accept-Encoding', 'Accept', 'Content-Type'].map(
      (name) => [name, { headers: { [name]: 'x' } }] as const,
    ),
    ...['Via', 'Idempotency-Key', 'X-Request-Id', 'Traceparent', 'Tracestate', 'If-None-Match', 'Range'].map(
      (name) => [name, { headers: { [name]: 'x' } }] as const,
    ),
    ...['If-Modified-Since', 'User-Agent'].map((name) => [name, { headers: { [name]: 'x' } }] as const),
  ];

  test.each(WRONG)('with %s is a fault of the gateway, and nothing is sent', async (_, given) => {
    const world = await openWorld({}, { hooks: { credential: async () => given as Exchanged } });
    expectProblem(await world.ask('getSubscription'), { status: 500, code: 'internal_error' });
    expect(faultsIn(world)).toMatchObject([{ fault: expect.stringMatching(/^TypeError +at /) }]);
    expect(world.upstream.calls).toEqual([]);
  });

  test.each(writeIds.filter((id) => !socialIds.includes(id)))('leaves the key of %s free', async (id) => {
    const failures: unknown[] = [
      GatewayError.of('unauthenticated'),
      GatewayError.of('upstream_bad_response', { fault: 'failed', outcome: 'unknown' }),
      new Error('down'),
      undefined,
    ];
    const credential: Exchange = (key) => {
      if (failures.length > 1) throw failures.shift();
      return failures.shift() === undefined && failures.length === 0 ? { headers: { 'X-Token': key } } : never();
    };
    const shop = await openShop({}, { hooks: { credential } });
    for (const seen of ['401 unauthenticated', '502 upstream_bad_response', '502 upstream_unreachable'])
      expect(gist(await shop.keyed(id))).toBe(seen);
    expect(shop.upstream.calls).toEqual([]);
    shop.answerAll();
    expect((await shop.keyed(id)).status).toBeLessThan(300);
    expect(shop.upstream.calls).toHaveLength(1);
  });
});

const never = (): never => {
  throw new Error('asked too often');
};

const hanging = () => {
  const asked = barrier();
  let signal: AbortSignal | undefined;
  const credential: Exchange = (_, options) => {
    ({ signal } = options);
    void asked.arrive();
    return new Promise<Exchanged>(() => undefined);
  };
  return { asked, credential, reason: () => signal?.aborted };
};

test('the time that an exchange takes is none of the upstream’s', async () => {
  const at = barrier();
  const { credential } = counting(60, () => at.arrive());
  const shop = await openShop({ UPSTREAM_TIMEOUT_MS: '1000', REQUEST_TIMEOUT_MS: '9000' }, { hooks: { credential } });
  shop.answerAll();
  const bought = shop.keyed('purchasePlan');
  await at.reached;
  shop.advance(2);
  at.release();
  expect((await bought).status).toBe(200);
});

describe('an exchange that hangs', () => {
  test.each(['getSubscription', 'purchasePlan'] as const)('ends %s as a 504 in time', async (id) => {
    const { asked, credential, reason } = hanging();
    const world = await openWorld({ REQUEST_TIMEOUT_MS: '3000' }, { hooks: { credential } });
    const answer = world.ask(id);
    await asked.reached;
    world.advance(3);
    const problem = expectProblem(await answer, { status: 504, code: 'upstream_timeout' });
    expect([problem.outcome, problem.retryable, reason(), world.upstream.calls]).toEqual([undefined, true, true, []]);
  });
});
