import { connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fetchTransport } from '../../../src/entry/worker/transport.ts';
import { says } from '../../support/contract.ts';
import { allOperations } from '../../support/account-api.ts';
import { exampleBody, exampleInput, exampleRequest } from '../../support/examples.ts';
import { type Env, type Gateway, type GatewayOptions, openGateway } from '../../support/gateway.ts';
import { call as callAt } from '../../support/http.ts';
import { ENTRY, type NodeProcess, startNode } from '../../support/process.ts';
import { json, startUpstream } from '../../support/scripted-upstream.ts';
import { cardHolder, cardLast4, email, LEAK_MARK, leaksIn, secret } from '../../support/secrets.ts';
import { answer, hang, refused, type Reply, reset } from '../../support/upstream.ts';

const READ = 'getSubscription';
const OVERVIEW = '/bff/v1/account-overview';

/** `requests`: the lines of requests so far. */
function open(env: Env = {}, options: GatewayOptions = {}) {
  const gateway = openGateway(env, options);
  return { ...gateway, requests: () => gateway.lines.filter(({ msg }) => msg === 'request') };
}

/** A good answer, one to a client that does wrong, one that fails. */
async function askAll({ ask, call, upstream }: Gateway): Promise<void> {
  await ask(READ);
  await call('/nothing');
  upstream.next(READ, answer(500));
  await ask(READ, { token: secret() });
}

const ALWAYS = 'level msg request_id trace_id method route status duration_ms upstream_calls upstream_ms client';

const expectFields = (line: object | undefined, more: string) =>
  expect(Object.keys(line ?? {}).toSorted()).toEqual(`${ALWAYS} ${more}`.split(' ').toSorted());

test(`${says('JSON lines on standard output, one a request, with an allow-list of fields')}: a HEAD of lines too`, async () => {
  const { request, idle, requests } = open();
  const { status } = await request(OVERVIEW, { method: 'HEAD', headers: { Accept: 'application/x-ndjson' } });
  await idle();
  expect(requests()).toMatchObject([{ method: 'HEAD', status, cache: 'stream' }]);
});

test(`${says('JSON lines on standard output, one a request, with an allow-list of fields')}: those that it names, and no more`, async () => {
  const { ask, call, upstream, requests } = open();
  const asking = { address: '192.0.2.7', headers: { 'x-request-id': 'of-the-client' } };
  await ask(READ, asking);
  upstream.next('getApiKey', answer(404, { detail: 'Not found.' }));
  await ask('getApiKey', asking);
  await call(`/${LEAK_MARK}`, asking);
  upstream.next('purchasePlan', reset());
  await ask('purchasePlan', { ...asking, key: 'one' });
  const [read, missing, unknown, bought] = requests();
  expectFields(read, 'operation account cache');
  expectFields(missing, 'operation account code');
  expectFields(unknown, 'code');
  expect(read).toMatchObject({ request_id: 'of-the-client', method: 'GET', route: '/api/v2/subscription/' });
  expect(read).toMatchObject({ status: 200, operation: READ, cache: 'miss', upstream_calls: 1, upstream_ms: 0 });
  expect(read?.trace_id).toMatch(/^[0-9a-f]{32}$/);
  expect(missing).toMatchObject({ status: 404, code: 'not_found', route: '/api/v2/apikey/{id}/' });
  expect(unknown).toMatchObject({ status: 404, code: 'unknown_endpoint', route: '(none)', upstream_calls: 0 });
  expect(bought).toMatchObject({ code: 'upstream_unreachable', reason: 'reset', outcome: 'unknown' });
});

test(`${says('`account` and `client` (hashes)')}: the same for all requests of one, and others for others`, async () => {
  const { ask, requests } = open({ SECRETS: secret('of-these-hashes-and-no-others') });
  const [one, other] = [secret(), secret()];
  await ask(READ, { token: one, address: '192.0.2.7' });
  await ask(READ, { token: one, address: '192.0.2.8' });
  await ask(READ, { token: other, address: '192.0.2.7' });
  const [first, second, third] = requests();
  expect([second?.account, third?.client]).toEqual([first?.account, first?.client]);
  expect(first?.client).toMatch(/^[\w-]{16}$/);
  expect([third?.account === first?.account, second?.client === first?.client]).toEqual([false, false]);
  expect(JSON.stringify(requests())).not.toMatch(/192\.0\.2/);
});

test.each([
  ['refused', refused(), 502],
  ['reset', reset(), 502],
  ['timeout', hang(), 504],
  ['status', answer(500), 502],
  ['bad_body', answer(200, '<html>'), 502],
  ['too_large', answer(200, { text: 'x'.repeat(3_000) }), 502],
] as const)(
  `${says('`dns`, `refused`, `tls`, `reset`, `timeout`, `status`, `bad_body`, `too_large`')}: %s`,
  async (reason, reply, status) => {
    const { ask, upstream, pass, requests } = open({ UPSTREAM_MAX_BODY_BYTES: '2000' });
    upstream.next('createApiKey', reply);
    const asked = ask('createApiKey');
    await pass(5);
    expect((await asked).status).toBe(status);
    expect(requests()).toMatchObject([{ reason, status, level: 'error' }]);
  },
);

test(says('on Workers `unreachable`'), async () => {
  const transport = fetchTransport(new URL('http://upstream.test'), () => Promise.reject(new Error('no connection')));
  const { ask, requests } = open({}, { transport });
  expect((await ask('createApiKey')).status).toBe(502);
  expect(requests()).toMatchObject([{ reason: 'unreachable' }]);
});

test(says('5xx are `error`'), async () => {
  const gateway = open();
  await askAll(gateway);
  const levels = gateway.requests().map(({ level, status }) => `${status} ${level}`);
  expect(levels).toEqual(['200 info', '404 info', '502 error']);
});

test(says('probes have no line'), async () => {
  const { call, lines } = open();
  for (const path of ['/livez', '/readyz']) expect((await call(path)).status).toBe(200);
  expect(lines).toEqual([]);
  expect((await call('/%6civez')).status).toBe(404); // which only a router takes for one
  expect(lines).toMatchObject([{ status: 404, code: 'unknown_endpoint' }]);
});

describe(says('Never a credential, cookie, card, e-mail, query value or body'), () => {
  test('whatever became of the request', async () => {
    const { ask, call, upstream, lines, idle } = open();
    const said = { code: LEAK_MARK, message: `${email()} ${cardHolder} ${cardLast4}` };
    const headers = { 'user-agent': LEAK_MARK, cookie: `a=${secret('cookie')}`, 'x-made-up': secret() };
    for (const { id } of allOperations)
      for (const reply of [answer(200, said), answer(409, [said]), answer(500, `<h1>${LEAK_MARK}</h1>`), reset()]) {
        upstream.next(id, () => reply);
        const { path } = exampleRequest(id);
        await ask(id, { token: secret(), headers, path: `${path}?x=${LEAK_MARK}` });
        upstream.clear();
      }
    await call(`/no/such/${LEAK_MARK}?${email()}`, { headers });
    await call(OVERVIEW, { token: `${secret()}é` });
    await call('/bff/v1/batch', { body: { requests: [{ id: LEAK_MARK, path: `/${LEAK_MARK}?x` }] } });
    await idle();
    expect(lines.length).toBeGreaterThan(4 * allOperations.length);
    expect(leaksIn(JSON.stringify(lines))).toEqual([]);
  });
});

test(says('or a share such as `0.01` (failures always)'), async () => {
  const rows = { all: [200, 404, 502], errors: [404, 502], failures: [502], 0: [502], 1: [200, 404, 502] };
  for (const [LOG_REQUESTS, statuses] of Object.entries(rows)) {
    const gateway = open({ LOG_REQUESTS });
    await askAll(gateway);
    expect(gateway.requests().map(({ status }) => status)).toEqual(statuses);
  }
  for (const [chance, statuses] of [
    [0.009, [200, 404, 502]],
    [0.01, [502]],
  ] as const) {
    const gateway = open({ LOG_REQUESTS: '0.01' }, { random: () => chance });
    await askAll(gateway);
    expect(gateway.requests().map(({ status }) => status)).toEqual(statuses);
  }
});

/** Where the time of a slow request went, by the last line. */
const legsOf = ({ requests }: ReturnType<typeof open>) => requests().at(-1)?.legs;

describe(says('from `SLOW_MS` on a line has its phases'), () => {
  test(`${says('`legs` when slow')}: from then on only`, async () => {
    const gateway = open({ SLOW_MS: '300' });
    const take = async (ms: number, reply?: Reply) => {
      const held = gateway.upstream.hold(READ);
      const asked = gateway.ask(READ, { token: secret() });
      await held.call;
      gateway.clock.advance(ms);
      held.release(reply);
      await asked;
    };
    await take(299);
    expect(gateway.requests()[0]).not.toHaveProperty('legs');
    await take(300);
    expect(legsOf(gateway)).toEqual([{ leg: READ, ms: 300, phases: { attempt: 300 } }]);
    await take(300, answer(503));
    expect(legsOf(gateway)).toMatchObject([{ leg: READ, ms: 300, reason: 'status', phases: { attempt: 300 } }]);
  });

  test('the wait for a slot, and for another’s call', async () => {
    const gateway = open({ SLOW_MS: '1', UPSTREAM_MAX_CONNECTIONS: '1' });
    const { ask, upstream, clock, pass, requests } = gateway;
    const held = upstream.hold(READ);
    const asked = [ask(READ), ask(READ), ask(READ, { token: secret() })];
    await held.call;
    await pass(0);
    clock.advance(700);
    held.release();
    await Promise.all(asked);
    const phases = requests().flatMap(({ legs }) => legs?.map((leg) => leg.phases));
    expect(phases).toEqual(expect.arrayContaining([{ attempt: 700 }, { joined: 700 }, { slot: 700 }]));
  });

  test('by section, without a refresh behind a stale answer', async () => {
    const gateway = open({ SLOW_MS: '1', CACHE_POLICY: '{"getSubscription":{"fresh":1},"getReferralConfig":false}' });
    const { ask, call, upstream, clock, pass, requests } = gateway;
    await call(OVERVIEW);
    await pass(2);
    const [refresh, config] = [upstream.hold(READ), upstream.hold('getReferralConfig')];
    const asked = call(OVERVIEW);
    await Promise.all([refresh.call, config.call]);
    await pass(0); // all that waits for nothing else is over
    clock.advance(900);
    config.release();
    await asked;
    expect(requests().at(-1)).toMatchObject({ stale: ['subscription'] });
    const waited = legsOf(gateway)?.filter(({ ms }) => ms > 0);
    expect(waited).toEqual([{ leg: 'referral_config', ms: 900, phases: { attempt: 900 } }]);
    refresh.release();
    await gateway.idle();
    expect((await ask(READ)).status).toBe(200);
  });
});

describe(says('`failed` and `stale` sections'), () => {
  test('with the reason, though the answer is a 200; in a stream too', async () => {
    for (const accept of ['application/json', 'application/x-ndjson']) {
      const { call, upstream, requests, idle } = open();
      upstream.next('getReferralConfig', answer(500));
      expect((await call(OVERVIEW, { headers: { accept } })).status).toBe(200);
      await idle();
      expect(requests()).toMatchObject([{ level: 'info', failed: ['referral_config'], reason: 'status' }]);
    }
  });

  test('the one that the whole fails for, and none where it is the client’s fault', async () => {
    const { call, upstream, requests } = open();
    upstream.next(READ, answer(500), answer(401));
    await call(OVERVIEW);
    await call(OVERVIEW, { token: secret() });
    expect(requests()).toMatchObject([{ status: 502, failed: ['subscription'], reason: 'status' }, { status: 401 }]);
    expect(requests()[1]).not.toHaveProperty('failed');
  });
});

const PURCHASE = '/api/v2/subscription/checkout/purchase/';

/** The disk of the log is full from that signal on. */
const FULL_ON_SIGNAL = `data:text/javascript,${encodeURIComponent(`
  import { closeSync, openSync, writeSync } from 'node:fs';
  process.on('SIGUSR2', () => {
    closeSync(1);
    writeSync(2, openSync('/dev/full', 'w') === 1 ? 'full' : 'not standard output');
  });
`)}`;

async function openProcess() {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.on(`POST ${PURCHASE}`, json(200, exampleBody('purchasePlan')));
  const env = { NODE_ENV: 'production', UPSTREAM_BASE_URL: upstream.url };
  const gateway = await startNode(env, { command: [process.execPath, '--import', FULL_ON_SIGNAL, ENTRY] });
  const { body } = exampleInput('purchasePlan');
  const request = { path: PURCHASE, token: secret(), body, headers: { 'Idempotency-Key': 'one-click' } };
  return { upstream, gateway, buy: () => callAt(gateway.url, request) };
}

const dropped = async ({ adminUrl }: NodeProcess) => {
  const { text } = await callAt(adminUrl, { path: '/metrics' });
  return Number(/^portico_log_lines_dropped_total (\d+)$/m.exec(text)?.[1]);
};

/** Each of them has a line, as long as one can be. Answers without a body are only counted. */
async function answerMany({ port }: NodeProcess, count: number): Promise<void> {
  const head = `HEAD /nowhere HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${'x'.repeat(128)}\r\n\r\n`;
  const socket = connect({ port, host: '127.0.0.1' }).setEncoding('latin1');
  let [sent, answered, tail] = [0, 0, ''];
  const more = () => {
    for (; sent < count && sent < answered + 25; sent++) socket.write(head);
  };
  more();
  for await (const text of socket as AsyncIterable<string>) {
    const ends = (tail + text).split('\r\n\r\n');
    tail = ends.pop() ?? '';
    answered += ends.length;
    if (answered === count) break;
    more();
  }
}

test(`${says('A reader of the log that stalls stops nothing: lines are dropped and counted')}; nor does a full disk`, async () => {
  const { upstream, gateway, buy } = await openProcess();
  gateway.stall();
  let asked = 0;
  for (; (await dropped(gateway)) === 0; asked += 2_000) await answerMany(gateway, 2_000);
  expect((await buy()).status).toBe(200);
  gateway.goOn();
  const { count } = await gateway.line(({ msg }) => msg === 'log lines were dropped');
  const lines = gateway.records().filter(({ msg }) => msg === 'request').length;
  expect(lines + Number(count)).toBe(asked + 1);
  gateway.signal('SIGUSR2');
  expect(await gateway.until(() => gateway.stderr() || undefined)).toBe('full');
  await answerMany(gateway, 100);
  expect(await buy()).toMatchObject({ status: 200, headers: { 'idempotency-replayed': 'true' } });
  expect(upstream.calls).toHaveLength(1);
  gateway.signal('SIGTERM');
  expect([await gateway.exited, gateway.stderr()]).toEqual([0, 'full']);
});
