import { describe, expect, test } from 'vitest';
import type { Hooks, OnProblem, UpstreamHeaders } from '../../../src/index.ts';
import { allOperations } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { isSocial } from '../../support/table.ts';
import { answer } from '../../support/upstream.ts';

const open = (hooks: Hooks, env = {}) => openGateway(env, { hooks });

const bearer: UpstreamHeaders = ({ credential }) => ({ Authorization: `Bearer ${credential}` });

const throwing = (thrown: unknown) => () => {
  throw thrown as Error;
};

describe(says('Hooks: `headers({ operation, credential, signal })`'), () => {
  test('gets the operation and the key, with every call', async () => {
    const asked: unknown[] = [];
    const { ask, upstream, me } = open({
      headers({ signal, ...others }) {
        asked.push([signal instanceof AbortSignal, others]);
        return { 'X-Key': others.credential, 'X-Empty': '', 'X-None': undefined };
      },
    });
    for (const { id } of allOperations) await ask(id);
    const keyOf = (id: string) => (isSocial(id as never) ? undefined : me);
    const wanted = allOperations.map(({ id, method, path }) => [
      true,
      { operation: { id, method, path }, credential: keyOf(id) },
    ]);
    expect(asked).toEqual(wanted);
    for (const { id = '', headers } of upstream.calls) {
      expect([headers['x-key'], headers['x-empty'], 'x-none' in headers]).toEqual([keyOf(id), '', false]);
      expect(headers).not.toHaveProperty('authorization');
    }
  });

  test('is asked for each attempt, and not for an answer from the cache', async () => {
    let count = 0;
    const { ask, upstream } = open({ headers: async () => ({ 'X-Count': String(++count) }) });
    upstream.next('getSubscription', answer(503));
    for (let n = 0; n < 2; n++) expect((await ask('getSubscription')).status).toBe(200);
    expect(upstream.calls.map(({ headers }) => headers['x-count'])).toEqual(['1', '2']);
  });

  test('is of the account that asks, in whatever order the promises end', async () => {
    const tokens = [secret(), secret(), secret(), secret()];
    const gates = new Map(tokens.map((token) => [token, Promise.withResolvers<void>()]));
    const { ask, upstream, pass } = open({
      async headers({ credential = '' }) {
        await gates.get(credential)?.promise;
        return { Authorization: `Token ${credential}` };
      },
    });
    for (const [n, token] of tokens.entries()) for (let m = 0; m < n; m++) upstream.change(token);
    const asked = tokens.map((token) => ask('getSubscription', { token }));
    await pass(0);
    for (const token of tokens.toReversed()) gates.get(token)?.resolve();
    expect((await Promise.all(asked)).map(({ version }) => version)).toEqual([1, 2, 3, 4]);
    const again = await Promise.all(tokens.map((token) => ask('getSubscription', { token })));
    expect([again.map(({ version }) => version), upstream.calls.length]).toEqual([[1, 2, 3, 4], 4]);
  });

  test('what it gives is in no problem, nor is the key, even if the upstream repeats them', async () => {
    const token = secret('token');
    const { ask, me, upstream } = open({
      headers: () => ({ Authorization: `Bearer ${token}`, 'X-Pair': `id=a; sig="${token}-sig"`, 'X-Pin': 'p1n!' }),
    });
    const detail = `the key ${me} or ${token} or Bearer ${token} or ${token}-sig or p1n! are no good`;
    upstream.next('getSubscription', answer(400, { detail, [`field ${token}`]: [token] }));
    const { text, json } = await ask('getSubscription');
    expect(json.detail).toBe('the key … or … or Bearer … or … or … are no good');
    expect([text.includes(token), text.includes(me)]).toEqual([false, false]);
  });
});

test(says('after a 401 of the upstream it is not asked again'), async () => {
  let count = 0;
  const { ask, upstream } = open({ headers: (asked) => bearer({ ...asked, credential: String(++count) }) });
  upstream.next('getSubscription', answer(401));
  expect([(await ask('getSubscription')).status, count, upstream.calls.length]).toEqual([401, 1, 1]);
});

/** What section 2 of the contract has, how a message is framed, and what the cache goes by. */
const NOT_ITS =
  'Accept Content-Type User-Agent X-Request-Id traceparent tracestate Idempotency-Key Via Host Content-Length ' +
  'Transfer-Encoding Connection TE Upgrade Trailer Keep-Alive Expect Proxy-Authorization Cookie Accept-Encoding Range ' +
  'If-None-Match If-Modified-Since Forwarded X-Forwarded-For';

describe(says('(it may not name those of section 2); its time'), () => {
  test.each<readonly [string, () => unknown]>([
    ...NOT_ITS.split(' ').map((name) => [`names \`${name}\``, () => ({ [name]: 'x' })] as const),
    ['gives nothing', () => undefined],
    ['gives `Headers`', () => new Headers({ 'X-A': 'a' })],
    ['gives a number', () => ({ 'X-A': 1 })],
    ['gives a value beyond ASCII', () => ({ 'X-A': 'é' })],
    ['names a header twice', () => ({ 'X-A': 'a', 'x-a': 'b' })],
    ['gives a line break in a value', () => ({ 'X-A': 'a\r\nX-B: b' })],
    ['gives a line break in a name', () => ({ 'X-A\r\nX-B': 'a' })],
    ['throws what is no error', throwing('hunter2')],
    ['throws an error without a stack', throwing(Object.assign(new Error('hunter2'), { stack: null }))],
    ['gives a promise that fails', () => Promise.reject(new Error('hunter2'))],
  ])('one that %s', async (_, headers) => {
    const { ask, upstream, lines } = open({ headers: headers as UpstreamHeaders });
    const { code, status, text } = await ask('getSubscription');
    expect([status, code, upstream.calls]).toEqual([500, 'internal_error', []]);
    const faults = lines.filter(({ msg }) => msg === 'the hook `headers` has failed');
    expect(faults).toMatchObject([{ fault: expect.stringMatching(/^(\w*Error +at |string$|Error$)/) }]);
    expect(JSON.stringify([text, lines])).not.toContain('hunter2');
  });
});

test(says('a throw is 500 `internal_error`, not sent'), async () => {
  let isBroken = true;
  const { ask, upstream } = open({ headers: (asked) => (isBroken ? throwing(new Error('down'))() : bearer(asked)) });
  const bought = { key: 'k' };
  expect((await ask('purchasePlan', bought)).json).toMatchObject({ status: 500, code: 'internal_error' });
  for (let n = 0; n < 25; n++) expect((await ask('getSubscription', { token: secret() })).status).toBe(500);
  isBroken = false; // the key is free, and no circuit is open
  for (const id of ['purchasePlan', 'getSubscription'] as const) expect((await ask(id, bought)).status).toBe(200);
  expect(upstream.calls).toHaveLength(2);
});

describe(says("its time is the request's"), () => {
  const env = { UPSTREAM_TIMEOUT_MS: '1000', REQUEST_TIMEOUT_MS: '3000' };

  test('and none of the upstream’s', async () => {
    const gate = Promise.withResolvers<void>();
    const { ask, pass } = open({ headers: async (asked) => gate.promise.then(() => bearer(asked)) }, env);
    const bought = ask('purchasePlan');
    await pass(2);
    gate.resolve();
    expect((await bought).status).toBe(200);
  });

  test.each(['getSubscription', 'purchasePlan'] as const)('%s is a 504 then, and was not sent', async (id) => {
    const signals: AbortSignal[] = [];
    const headers: UpstreamHeaders = ({ signal }) => (signals.push(signal), new Promise(() => undefined));
    const { ask, pass, upstream, lines } = open({ headers }, env);
    const late = ask(id);
    await pass(3);
    expect((await late).json).toMatchObject({ status: 504, code: 'upstream_timeout' });
    expect([(await late).json.outcome, signals[0]?.aborted, upstream.calls]).toEqual([undefined, true, []]);
    expect(lines.filter(({ msg }) => msg !== 'request')).toEqual([]);
  });

  test('it ends where a client leaves: its write is not sent, and its key is free', async () => {
    const aborted = Promise.withResolvers<void>();
    let isHeld = true;
    const headers: UpstreamHeaders = (asked) => {
      asked.signal.addEventListener('abort', () => aborted.resolve());
      return isHeld ? aborted.promise.then(() => bearer(asked)) : bearer(asked);
    };
    const { ask, pass, upstream, idle } = open({ headers });
    const leaving = new AbortController();
    const left = ask('purchasePlan', { key: 'k', signal: leaving.signal }).catch(() => undefined);
    await pass(0);
    leaving.abort();
    await Promise.all([left, aborted.promise, idle()]);
    isHeld = false;
    expect([(await ask('purchasePlan', { key: 'k' })).status, upstream.calls.length]).toEqual([200, 1]);
  });
});

const WORDS = { title: 'Oh', detail: 'Leider nein.', support: { id: 7 } };

/** All that a hook may not change, changed. */
const LIES = {
  type: 'https://help.example/x',
  status: 200,
  code: 'fine',
  request_id: 'other',
  instance: '/other',
  retryable: 'yes',
  retry_after: 99,
  outcome: 'known',
  section: 'other',
  errors: [{ code: 'x', message: 'x', field: null }],
};

/** Problems of every sort, by what answers them. */
const PROBLEMS = {
  'an unknown path': ({ call }) => call('/api/v2/nothing/'),
  'a refusal': ({ ask, upstream }) => {
    upstream.next('listNotifications', answer(400, { field: [{ message: 'no', code: 'no' }] }));
    return ask('listNotifications');
  },
  'an unknown outcome': ({ ask, upstream }) => {
    upstream.next('purchasePlan', answer(500));
    return ask('purchasePlan', { key: secret() });
  },
  'a required section': ({ call, upstream }) => {
    upstream.next('getSubscription', answer(500));
    return call('/bff/v1/account-overview');
  },
} as const satisfies Record<string, (gateway: ReturnType<typeof open>) => ReturnType<ReturnType<typeof open>['call']>>;

describe(says('may add members or change `title` and `detail`'), () => {
  const asked = { headers: { 'x-request-id': 'the-same' } };
  const withId = (gateway: ReturnType<typeof open>): typeof gateway => ({
    ...gateway,
    ask: (id, asking) => gateway.ask(id, { ...asking, ...asked }),
    call: (path, asking) => gateway.call(path, { ...asking, ...asked }),
  });

  test.each(Object.entries(PROBLEMS))('of the problem of %s; all else stays ours', async (_, ask) => {
    const plain = (await ask(withId(open({})))).json as object;
    const lying = open({ onProblem: (problem) => ({ ...problem, ...WORDS, ...LIES }) });
    const told = await ask(withId(lying));
    const ours = Object.fromEntries(Object.entries(plain).filter(([name]) => name in LIES));
    expect(told.json).toEqual({ ...ours, ...WORDS });
    const changing = open({
      onProblem(problem) {
        (problem.errors as unknown[]).splice(0);
        Object.assign(problem, LIES);
        return {};
      },
    });
    expect((await ask(withId(changing))).json).toEqual(plain);
    expect([...lying.lines, ...changing.lines].filter(({ msg }) => msg.includes('hook'))).toEqual([]);
  });

  test('of entries of overviews and items of batches too, by the operation and where there is a problem', async () => {
    const seen: unknown[] = [];
    const { call, upstream, ask } = open({
      onProblem: (problem, { operation }) => {
        seen.push([problem.code, operation, problem['section']]);
        return { ...problem, ...WORDS, ...LIES };
      },
    });
    await ask('getSubscription');
    for (const headers of [{}, { accept: 'application/x-ndjson' }]) {
      upstream.next('getReferralConfig', answer(429, {}, { 'retry-after': '9' }));
      const { text } = await call('/bff/v1/account-overview', { headers, token: secret() });
      const [, entry = ''] = /"error(?:s":\[|":)(\{.*?\}\})/.exec(text) ?? [];
      const ours = { code: 'rate_limited', status: 429, retryable: true, retry_after: 9 };
      expect(JSON.parse(entry)).toMatchObject({ ...ours, detail: WORDS.detail, support: WORDS.support });
    }
    const requests = ['/api/v2/subscription/', '/api/v2/nothing/'].map((path) => ({ id: path, path }));
    const { responses } = (await call('/bff/v1/batch', { body: { requests } })).json;
    expect(responses).toMatchObject([{ status: 200 }, { status: 404, body: { code: 'unknown_endpoint', ...WORDS } }]);
    const section = ['rate_limited', 'getAccountOverview', 'referral_config'];
    expect(seen).toEqual([section, section, ['unknown_endpoint', 'batch', undefined]]);
  });

  test.each<readonly [string, () => unknown]>([
    ['throws', throwing(new SyntaxError('hunter2'))],
    ['throws an error whose stack is no text', throwing(Object.assign(new Error('hunter2'), { stack: 5 }))],
    ['returns nothing', () => undefined],
    ['returns a promise that fails', () => Promise.reject(new Error('hunter2'))],
    ['returns what is no JSON', () => ({ count: 1n })],
    ['returns a title that is no text', () => ({ ...WORDS, title: { de: 'Nein' } })],
  ])('where it %s the problem goes out as it was, and the log says so', async (_, hook) => {
    const { call, lines } = open({ onProblem: hook as OnProblem });
    const { json, text } = await call('/api/v2/nothing/');
    expect(json).toMatchObject({ status: 404, title: 'Unknown endpoint', type: '/problems/unknown_endpoint' });
    expect(lines.filter(({ fault }) => fault)).toMatchObject([
      { fault: expect.stringMatching(/^(\w+Error +at |Error$)/) },
    ]);
    expect(JSON.stringify([text, lines])).not.toContain('hunter2');
  });
});
