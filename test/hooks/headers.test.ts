import { describe, expect, test } from 'vitest';
import type { AskedHeaders, UpstreamHeaders } from '../../src/upstream/hooks.ts';
import { barrier, json, perCall } from '../support/scripted-upstream.ts';
import { expectProblem } from '../http/problem.ts';
import { gist, openShop } from '../idempotency/helpers.ts';
import { allOperations } from '../support/account-api.ts';
import { bodyOf, callOf, goodAnswer } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { rowOf, socialIds, writeIds } from '../support/table.ts';
import { openWorld, type World } from '../support/world.ts';

const bearer: UpstreamHeaders = ({ credential }) => ({ Authorization: `Bearer ${credential}` });

const apiKey: UpstreamHeaders = ({ credential = 'none' }) => ({
  'X-Api-Key': credential,
  'X-Empty': '',
  'X-None': undefined,
});

const faultsIn = ({ gateway }: Pick<World, 'gateway'>) =>
  gateway.lines.filter(({ msg }) => msg === 'the hook `headers` has failed');

const never = () => new Promise<never>(() => undefined);

describe('what the hook gives', () => {
  test('is sent in the place of `Authorization`, with every operation', async () => {
    const world = await openWorld({}, { hooks: { headers: apiKey } });
    world.answerAll();
    for (const { id } of allOperations) {
      await world.ask(id);
      const {
        authorization,
        'x-api-key': key,
        'x-empty': empty,
        'x-none': none,
      } = world.upstream.calls.at(-1)?.headers ?? {};
      expect([id, authorization, none, key, empty]).toEqual([
        id,
        undefined,
        undefined,
        socialIds.includes(id) ? 'none' : world.token,
        '',
      ]);
    }
    expect(world.upstream.calls).toHaveLength(allOperations.length);
  });

  test('may be a promise, and `Authorization` of another scheme', async () => {
    const world = await openWorld({}, { hooks: { headers: async (asked) => bearer(asked) } });
    world.answerAll();
    expect((await world.ask('getSubscription')).status).toBe(200);
    expect(world.upstream.calls[0]?.headers['authorization']).toBe(`Bearer ${world.token}`);
  });

  test('is not in a problem, even if the upstream repeats it, nor is the key', async () => {
    const token = secret('token');
    const headers = () => ({
      Authorization: `Bearer ${token}`,
      'X-Pair': `id=short; sig="${token}-sig"`,
      'X-Pin': 'p1n!',
    });
    const world = await openWorld({}, { hooks: { headers } });
    const detail = `the key ${world.token} or ${token} or Bearer ${token} or ${token}-sig or p1n! are no good`;
    world.upstream.on(callOf('getSubscription'), json(400, { detail, [`field ${token}`]: [token] }));
    const { text, json: problem } = await world.ask('getSubscription');
    expect(text).not.toContain(token);
    expect(text).not.toContain(world.token);
    expect(problem).toMatchObject({ detail: 'the key … or … or Bearer … or … or … are no good' });
  });

  test('is of the account that asks, in whatever order the promises end', async () => {
    const tokens = Array.from({ length: 6 }, () => secret());
    const gates = new Map(tokens.map((token) => [token, barrier()]));
    const headers: UpstreamHeaders = async ({ credential = '' }) => {
      await gates.get(credential)?.arrive();
      return { 'X-Token': credential };
    };
    const world = await openWorld({}, { hooks: { headers } });
    world.upstream.on(
      () => true,
      perCall((to) => goodAnswer(to, to.headers['x-token'] ?? 'none')),
    );
    const asked = tokens.map((token) => world.ask('getSubscription', { token }));
    await Promise.all([...gates.values()].map((gate) => gate.reached));
    for (const token of tokens.toReversed()) gates.get(token)?.release();
    for (const [at, answer] of (await Promise.all(asked)).entries())
      expect(answer.text).toContain(`"x_mark":"${tokens[at]}"`);
    for (const token of tokens)
      // from the cache of each
      expect((await world.ask('getSubscription', { token })).text).toContain(`"x_mark":"${token}"`);
    expect(world.upstream.calls).toHaveLength(tokens.length);
  });
});

describe('the hook', () => {
  test('gets the operation and the key, which a row without a credential has not', async () => {
    const asked: Omit<AskedHeaders, 'signal'>[] = [];
    const headers: UpstreamHeaders = ({ signal, ...others }) => {
      asked.push(others);
      return signal instanceof AbortSignal ? {} : never();
    };
    const world = await openWorld({}, { hooks: { headers } });
    world.answerAll();
    for (const { id } of allOperations) await world.ask(id);
    expect(asked).toEqual(
      allOperations.map(({ id, method, path }) => ({
        operation: { id, method, path },
        credential: socialIds.includes(id) ? undefined : world.token,
      })),
    );
  });

  test('is asked for each attempt, and not for an answer from the cache', async () => {
    let count = 0;
    const world = await openWorld({}, { hooks: { headers: () => ({ 'X-Count': String(++count) }) } });
    world.upstream.on(callOf('getSubscription'), json(503), json(200, bodyOf('getSubscription', 1)));
    for (let asked = 0; asked < 2; asked++) expect((await world.ask('getSubscription')).status).toBe(200);
    expect(world.upstream.calls.map(({ headers }) => headers['x-count'])).toEqual(['1', '2']);
  });

  test('is not asked again after a 401 of the upstream', async () => {
    let count = 0;
    const headers: UpstreamHeaders = (asked) => bearer({ ...asked, credential: String(++count) });
    const world = await openWorld({}, { hooks: { headers } });
    world.upstream.on(callOf('getSubscription'), json(401));
    expectProblem(await world.ask('getSubscription'), { status: 401, code: 'unauthenticated' });
    expect([count, world.upstream.calls.length]).toEqual([1, 1]);
  });
});

const throwing = (thrown: unknown) => () => {
  throw thrown;
};

/** What section 2 of the contract has, how a message is framed, and what the cache goes by. */
const NOT_ITS = (
  'Accept Content-Type User-Agent X-Request-Id traceparent tracestate Idempotency-Key Via Host Content-Length ' +
  'Transfer-Encoding Connection TE Upgrade Trailer Keep-Alive Expect Proxy-Authorization Cookie Accept-Encoding Range ' +
  'If-None-Match If-Modified-Since Forwarded X-Forwarded-For'
).split(' ');

const WRONG: readonly (readonly [what: string, given: () => unknown])[] = [
  ['throws', throwing(new SyntaxError('hunter2'))],
  ['throws what is no error', throwing('hunter2')],
  ['throws an error without a stack', throwing(Object.assign(new Error('hunter2'), { stack: null }))],
  ['gives nothing', () => undefined],
  ['gives a promise that fails', () => Promise.reject(new Error('hunter2'))],
  ['gives `Headers`', () => new Headers({ 'X-A': 'a' })],
  ['gives a list', () => ['X-A', 'a']],
  ['gives a number', () => ({ 'X-A': 1 })],
  ['gives a value beyond ASCII', () => ({ 'X-A': 'é' })],
  ['names a header twice', () => ({ 'X-A': 'a', 'x-a': 'b' })],
  ['gives a line break in a value', () => ({ 'X-A': 'a\r\nX-B: b' })],
  ['gives a line break in a name', () => ({ 'X-A\r\nX-B': 'a' })],
  ...NOT_ITS.map((name) => [`names \`${name}\``, () => ({ [name]: 'x' })] as const),
];

describe.each(WRONG)('a hook that %s', (_, given) => {
  test('is a fault of the gateway, which the log has without its message, and nothing is sent', async () => {
    const world = await openWorld({}, { hooks: { headers: given as UpstreamHeaders } });
    const answer = await world.ask('getSubscription');
    expectProblem(answer, { status: 500, code: 'internal_error' });
    expect(faultsIn(world)).toMatchObject([{ fault: expect.stringMatching(/^(\w*Error +at |string$|Error$)/) }]);
    expect(JSON.stringify([answer.text, world.gateway.lines])).not.toContain('hunter2');
    expect(world.upstream.calls).toEqual([]);
  });
});

test.each(writeIds)('where it fails, the key of %s is free again', async (id) => {
  let isBroken = true;
  const headers = () => ({ 'X-A': isBroken ? 'é' : 'a' });
  const shop = await openShop({}, { hooks: { headers } });
  const isKeyed = rowOf(id).method === 'POST';
  const ask = () => (isKeyed ? shop.keyed(id) : shop.ask(id));
  expect(gist(await ask())).toBe('500 internal_error');
  isBroken = false;
  shop.answerAll();
  expect((await ask()).status).toBeLessThan(300);
  expect(shop.upstream.calls).toHaveLength(1);
});

test('that it fails is no failure of the upstream: the circuit stays closed', async () => {
  let isBroken = true;
  const headers: UpstreamHeaders = (asked) => (isBroken ? throwing(new Error('down'))() : bearer(asked));
  const world = await openWorld({}, { hooks: { headers } });
  world.answerAll();
  for (let asked = 0; asked < 25; asked++)
    expect((await world.ask('getSubscription', { token: secret() })).status).toBe(500);
  isBroken = false;
  expect((await world.ask('getSubscription')).status).toBe(200);
});

describe('the time of the hook', () => {
  test('is none of the upstream’s', async () => {
    const at = barrier();
    const headers: UpstreamHeaders = async (asked) => {
      await at.arrive();
      return bearer(asked);
    };
    const shop = await openShop({ UPSTREAM_TIMEOUT_MS: '1000', REQUEST_TIMEOUT_MS: '9000' }, { hooks: { headers } });
    shop.answerAll();
    const bought = shop.keyed('purchasePlan');
    await at.reached;
    shop.advance(2);
    at.release();
    expect((await bought).status).toBe(200);
  });

  test.each(['getSubscription', 'purchasePlan'] as const)('is that of the request: %s is then a 504', async (id) => {
    const asked = barrier();
    let signal: AbortSignal | undefined;
    const headers: UpstreamHeaders = (given) => {
      ({ signal } = given);
      void asked.arrive();
      return never();
    };
    const world = await openWorld({ REQUEST_TIMEOUT_MS: '3000' }, { hooks: { headers } });
    const answer = world.ask(id);
    await asked.reached;
    world.advance(3);
    const problem = expectProblem(await answer, { status: 504, code: 'upstream_timeout' });
    expect([problem.outcome, signal?.aborted, world.upstream.calls]).toEqual([undefined, true, []]);
    expect(faultsIn(world)).toEqual([]);
  });

  test('ends where a client leaves: its write is not sent, and its key is free again', async () => {
    const at = barrier();
    const aborted = Promise.withResolvers<void>();
    let count = 0;
    const headers: UpstreamHeaders = async (asked) => {
      asked.signal.addEventListener('abort', () => aborted.resolve());
      if (++count === 1) await at.arrive();
      return bearer(asked);
    };
    const shop = await openShop({}, { hooks: { headers } });
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
});
