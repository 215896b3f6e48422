import { beforeEach, describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { type Answer, type Gateway, type GatewayOptions, openGateway } from '../../support/gateway.ts';
import { expectCommonHeaders, expectProblem } from '../../support/problem.ts';
import { secret } from '../../support/secrets.ts';
import { answer, flawed, hang, noAnswer, type Reply, transportBy } from '../../support/upstream.ts';

const SECRETS = secret('of-the-instances-themselves');
const OURS = /^1\.1 portico-[\w-]{12}$/;

const requestsOf = ({ lines }: Gateway) => lines.filter(({ msg }) => msg === 'request').length;
const warningsOf = ({ lines }: Gateway) => lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg);

/** To another gateway, which is there when it is called. */
const to = (next: () => Gateway): NonNullable<GatewayOptions['transport']> =>
  transportBy(async ({ method, path, headers: pairs, body, beforeFirstByte }) => {
    beforeFirstByte?.();
    const headers = pairs.flatMap((name, at) => (at % 2 === 0 ? [[name, pairs[at + 1]!] as [string, string]] : []));
    const got = await next().app.request(path, { method, headers, ...(body !== undefined && { body }) });
    return { status: got.status, headers: Object.fromEntries(got.headers), body: { text: await got.text() } };
  });

/** Each gateway's upstream is the next one, and that of the last is the first. */
function openRing(size: number): readonly Gateway[] {
  const ring: Gateway[] = Array.from({ length: size }, (_, at) => {
    const env = { SECRETS, SESSIONS: 'true', UPSTREAM_BASE_URL: `http://gateway-${at}.test` };
    return openGateway(env, { transport: to(() => ring[(at + 1) % size]!) });
  });
  return ring;
}

describe.each([1, 3])(`${says('the request has been here before (`Via`)')}: a ring of %i`, (size) => {
  test('ends each read and write at its second time through, as if it had never been sent', async () => {
    const ring = openRing(size);
    const { ask, call } = ring[0]!;
    const headers = { 'sec-fetch-site': 'same-origin' };
    const asked = [
      () => ask('getSubscription'),
      () => ask('getApiKey', { token: secret() }),
      () => ask('createApiKey', { token: secret() }),
      () => call('/bff/v1/account-overview', { token: secret() }),
      () => call('/bff/v1/session', { token: null, body: { token: secret() }, headers }),
    ];
    for (const once of asked) {
      const before = ring.map(requestsOf);
      const { retryable, outcome } = expectProblem(await once(), { status: 508, code: 'loop_detected' });
      expect([retryable, outcome]).toEqual([false, undefined]);
      const begun = ring.map((gateway, at) => requestsOf(gateway) - before[at]!);
      expect(Math.min(...begun)).toBeGreaterThan(0);
      expect(Math.max(...begun)).toBeLessThanOrEqual(1 + 4); // an overview has four calls
    }
    // It is warned of once, and frees the key of a write, which never got anywhere.
    const order = { token: secret(), key: 'once' };
    for (let n = 0; n < 3; n++) expectProblem(await ask('purchasePlan', order), { status: 508, code: 'loop_detected' });
    for (const gateway of ring) expect(warningsOf(gateway)).toEqual(['the upstream fails']);
  });
});

const idWith = async (env: Readonly<Record<string, string>>) => {
  const gateway = openGateway(env);
  await gateway.ask('getApiKey');
  return gateway.upstream.calls[0]!.headers['via'];
};

describe(says('the request has been here before'), () => {
  const { ask, call, upstream } = openGateway();

  const viaFor = async (via?: string) => {
    const got = await ask('getApiKey', { token: secret(), headers: via === undefined ? {} : { via } });
    return got.status === 200 ? upstream.calls.at(-1)!.headers['via']! : got.code;
  };

  test('where our id is in it, wherever it stands', async () => {
    const own = (await viaFor())!;
    expect(own).toMatch(OURS);
    const id = own.slice('1.1 '.length);
    for (const via of [own, `1.0 fred, ${own}`, `${own},1.0 fred`, `HTTP/2.0 ${id} (edge, one)`, `2 ${id}`])
      expect(await viaFor(via)).toBe('loop_detected');
    expect(await viaFor(`1.1 x${id}`)).toBe(own);
    for (const path of ['/readyz', '/problems/loop_detected', '/openapi.json'])
      expect((await call(path, { headers: { via: own } })).status).toBe(200);
  });

  test('and no more of its way than gateways of ours is told to the upstream', async () => {
    const own = await viaFor();
    expect(await viaFor('1.0 fred, 1.1 p.example (Apache/1.1)')).toBe(own);
    expect(await viaFor('1.1 portico, 1.1 portico-short, 1.1 xportico-0123456789ab')).toBe(own);
    const before = '1.1 portico-0123456789ab, 1.0 squid,HTTP/2 portico-ABCDEFGHIJ_-\t(x)';
    expect(await viaFor(before)).toBe(`1.1 portico-0123456789ab, 1.1 portico-ABCDEFGHIJ_-, ${own}`);
  });

  test('on any instance with this upstream and the last of SECRETS, and no other', async () => {
    const other = secret('of-other-instances-than-these');
    const own = await idWith({ SECRETS });
    expect(await idWith({ SECRETS: `${other},${SECRETS}` })).toBe(own);
    const elsewhere = { SECRETS, UPSTREAM_BASE_URL: 'http://elsewhere.test' };
    const others = [await idWith({ SECRETS: other }), await idWith(elsewhere), await idWith({}), await idWith({})];
    expect(new Set([own, ...others]).size).toBe(5);
  });

  const whole = { type: '/base/problems/loop_detected', code: 'loop_detected', request_id: 'one', retryable: false };

  test.each([
    { code: 'loop_detected' },
    { ...whole, type: 'about:blank' },
    { ...whole, code: 'loop' },
    { ...whole, request_id: undefined },
    { ...whole, retryable: true },
  ])(
    'as the whole problem of another gateway says too, but not where the upstream says so for itself: %j',
    async (body) => {
      upstream.next('getApiKey', answer(508, whole));
      expectProblem(await ask('getApiKey', { token: secret() }), { status: 508, code: 'loop_detected' });
      const order = { token: secret(), key: 'once' };
      upstream.next('getApiKey', answer(508, body));
      upstream.next('purchasePlan', answer(508, body));
      expectProblem(await ask('getApiKey', order), { status: 502, code: 'upstream_bad_response' });
      const got = await ask('purchasePlan', order);
      expect(expectProblem(got, { status: 502, code: 'upstream_bad_response' }).outcome).toBe('unknown');
      expectProblem(await ask('purchasePlan', order), { status: 409, code: 'outcome_unknown' });
    },
  );
});

/** Something that a transport comes to, and what is made of it. Which bytes come to what is test/node/transport.test.ts. */
interface Fault {
  readonly what: () => Reply;
  /** A read without a copy; no code where the answer counts as good. */
  readonly read: readonly [status: number, code?: string];
  /** Of the line in the log; none where the upstream has not failed. */
  readonly reason?: string;
  readonly isRetried?: true;
  readonly isUnsent?: true;
  /** Says something about the account or about what was asked for, so that nothing older is true any more. */
  readonly isRefusal?: true;
}

const [UNREACHABLE, UNREADABLE] = [[502, 'upstream_unreachable'] as const, [502, 'upstream_bad_response'] as const];
const TIMEOUT = [504, 'upstream_timeout'] as const;
const RETRIED = { isRetried: true } as const;
const REFUSAL = { isRefusal: true } as const;

const UNSENT = { read: UNREACHABLE, isUnsent: true, isRetried: true } as const;

const FAULTS: Readonly<Record<string, Fault>> = {
  refused: { what: () => noAnswer('no_connection', 'refused'), reason: 'refused', ...UNSENT },
  dns: { what: () => noAnswer('no_connection', 'dns'), reason: 'dns', ...UNSENT },
  tls: { what: () => noAnswer('no_connection', 'tls'), reason: 'tls', ...UNSENT },
  blackholed: { what: () => noAnswer('connect_timeout', 'timeout'), read: TIMEOUT, reason: 'timeout', isUnsent: true },
  reset: { what: () => noAnswer('broken', 'reset'), read: UNREACHABLE, reason: 'reset', ...RETRIED },
  'no HTTP': { what: () => noAnswer('malformed', 'bad_body'), read: UNREADABLE, reason: 'bad_body' },
  hang: { what: hang, read: TIMEOUT, reason: 'timeout' },
  'a body cut short': { what: () => flawed('cut_short'), read: UNREADABLE, reason: 'reset' },
  'a body too large': { what: () => flawed('too_large'), read: UNREADABLE, reason: 'too_large' },
  'no UTF-8': { what: () => flawed('charset'), read: UNREADABLE, reason: 'bad_body' },
  'HTML with 200': { what: () => answer(200, '<h1>Back soon</h1>'), read: UNREADABLE, reason: 'bad_body' },
  204: { what: () => answer(204), read: [204] },
  302: { what: () => answer(302, '', { location: 'http://127.0.0.1:9/' }), read: UNREADABLE, reason: 'status' },
  500: { what: () => answer(500, { detail: 'stack' }), read: UNREADABLE, reason: 'status' },
  502: { what: () => answer(502, '<h1>Bad</h1>'), read: UNREADABLE, reason: 'status', ...RETRIED },
  503: { what: () => answer(503), read: [503, 'upstream_unavailable'], reason: 'status', ...RETRIED },
  504: { what: () => answer(504), read: TIMEOUT, reason: 'status', ...RETRIED },
  401: { what: () => answer(401, { detail: 'Invalid token.' }), read: [401, 'unauthenticated'], ...REFUSAL },
  403: { what: () => answer(403, { detail: 'No.', code: '2fa_needed' }), read: [403, '2fa_needed'], ...REFUSAL },
  404: { what: () => answer(404, { detail: 'Not found.' }), read: [404, 'not_found'], ...REFUSAL },
};

const [READ, WRITE, OVERVIEW] = ['listNotifications', 'purchasePlan', '/bff/v1/account-overview'] as const;

const { ask, upstream, pass, lines } = openGateway();

let token = '';
beforeEach(() => void (token = secret()));

const gist = (got: Answer) => {
  if (got.code === undefined) expectCommonHeaders(got);
  else expectProblem(got, { status: got.status, code: got.code });
  return got.code === undefined ? [got.status] : [got.status, got.code];
};

/** Asks while the fault strikes the operation, as often as it is called. */
async function struck({ what, isRetried }: Fault, id: typeof READ | typeof WRITE, path?: string): Promise<Answer> {
  upstream.calls.length = 0;
  upstream.next(id, ...Array.from({ length: id === READ && isRetried ? 3 : 1 }, what));
  const pending = ask(id, { token, ...(path !== undefined && { path, method: 'GET' }) });
  if (what === hang) {
    await upstream.arrived(id);
    await pass(5);
  }
  return pending;
}

/** The account itself gets what the upstream says now. */
async function expectNothingKept(): Promise<void> {
  const [before, got] = [upstream.calls.length, await ask(READ, { token })];
  expect([got.status, got.version === undefined, upstream.calls.length - before]).toEqual([200, false, 1]);
}

const lastLine = () => lines.filter(({ msg }) => msg === 'request').at(-1);

describe.each(Object.entries(FAULTS))('%s', (_, fault) => {
  const [status, code] = fault.read;
  const calls = fault.isRetried ? 3 : 1;

  test(`${says("The upstream's errors come in many shapes")}: a read gets the documented answer, and nothing bad is kept`, async () => {
    expect(gist(await struck(fault, READ))).toEqual(fault.read);
    expect([upstream.callsTo(READ).length, lastLine()?.['reason']]).toEqual([calls, fault.reason]);
    expect((await ask(READ, { token: secret() })).status).toBe(200); // another account
    await expectNothingKept();
  });

  test(`${says('A stale copy beats a failure.')}: a read with an older copy gets that, but for refusals`, async () => {
    const older = await ask(READ, { token });
    await pass(100); // neither fresh nor stale
    const got = await struck(fault, READ);
    const isOlder = !fault.isRefusal && status >= 300;
    expect(gist(got)).toEqual(isOlder ? [200] : fault.read);
    if (isOlder) expect([got.text, got.cache]).toEqual([older.text, expect.stringMatching(/^portico; hit; ttl=-\d+$/)]);
    expect(upstream.callsTo(READ)).toHaveLength(calls);
  });

  test(`${says('any failure. Another one: 200, `null`, an entry in `errors`')}, but for refusals of the account`, async () => {
    const got = await struck(fault, READ, OVERVIEW);
    if (status === 401 || status === 403) return expect(gist(got)).toEqual(fault.read);
    expect(gist(got)).toEqual([200]);
    // A read without a body is passed on as it came; a section without one is of no use.
    const failed = status === 204 ? 'upstream_bad_response' : code;
    expect(got.json).toMatchObject({
      errors: [{ code: failed }],
      data: { notifications: null, subscription: { x_version: 1 } },
    });
    expect(upstream.callsTo(READ)).toHaveLength(calls);
  });

  test(`${says('false where `outcome` is `unknown`')}: a purchase is sent once, and says what is known of it`, async () => {
    const got = await struck(fault, WRITE);
    expect(gist(got)).toEqual(fault.read);
    const isUnknown = status >= 500 && !fault.isUnsent;
    if (code !== undefined) expect(got.json.outcome).toBe(isUnknown ? 'unknown' : undefined);
    expect([upstream.callsTo(WRITE).length, lastLine()?.['outcome']]).toEqual([1, isUnknown ? 'unknown' : undefined]);
    await expectNothingKept();
  });
});
