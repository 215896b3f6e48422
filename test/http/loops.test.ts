import { connect, createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { allOperations } from '../support/account-api.ts';
import { exampleRequest } from '../support/examples.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call } from '../support/http.ts';
import { callOf, goodAnswer, pathOf } from '../support/marked.ts';
import { json, perCall, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { listenLocally } from '../support/ports.ts';
import { secret } from '../support/secrets.ts';
import { openWorld } from '../support/world.ts';
import { expectProblem } from './problem.ts';

const READ = 'getSubscription';
const SECRETS = secret('of-the-instances-themselves');
const OURS = /^1\.1 portico-[\w-]{12}$/;

/** An address that leads to a port which is known later. */
async function openDetour(): Promise<{ readonly url: string; to: number }> {
  const detour = { url: '', to: 0 };
  const server = createServer((from) => {
    const there = connect(detour.to, '127.0.0.1');
    from.on('error', () => there.destroy());
    there.on('error', () => from.destroy());
    from.pipe(there).pipe(from);
  });
  detour.url = `http://127.0.0.1:${await listenLocally(server)}`;
  onTestFinished(() => void server.close());
  return detour;
}

async function gatewayTo(url: string): Promise<TestGateway> {
  const gateway = await startGateway(url, { env: { SECRETS, SESSIONS: 'true' } });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Each gateway's upstream is the next one, and that of the last is the first. */
async function openRing(size: number): Promise<readonly TestGateway[]> {
  const detour = await openDetour();
  const ring: TestGateway[] = [];
  for (let at = 0; at < size; at++) ring.unshift(await gatewayTo(ring[0]?.url ?? detour.url));
  detour.to = ring[0]?.port ?? 0;
  return ring;
}

const warningsOf = ({ lines }: TestGateway) => lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg);
const requestsOf = ({ lines }: TestGateway) => lines.filter(({ msg }) => msg === 'request').length;

describe.each([1, 2, 3])('a ring of %i', (size) => {
  test('ends every read and every write at its second time through, with a problem that says so', async () => {
    const ring = await openRing(size);
    const [first] = ring as [TestGateway];
    const asked = [
      ...allOperations.map(({ id }) => ({ ...exampleRequest(id), token: secret() })),
      { path: '/bff/v1/account-overview', token: secret() },
      { method: 'POST', path: '/bff/v1/session', body: { token: secret() } },
    ];
    for (const options of asked) {
      const before = ring.map(requestsOf);
      const headers = { 'sec-fetch-site': 'same-origin' };
      const answer = await call(first.url, { ...options, headers });
      const { retryable, outcome } = expectProblem(answer, { status: 508, code: 'loop_detected' });
      expect([options.path, retryable, outcome]).toEqual([options.path, false, undefined]);
      const begun = ring.map((gateway, at) => requestsOf(gateway) - (before[at] ?? 0));
      expect(Math.min(...begun)).toBeGreaterThan(0);
      expect(Math.max(...begun)).toBeLessThanOrEqual(1 + 4); // an overview has four legs
    }
  });

  test('is warned of once', async () => {
    const ring = await openRing(size);
    for (let times = 0; times < 3; times++) await call(ring[0]?.url ?? '', { path: pathOf(READ), token: secret() });
    for (const gateway of ring) expect(warningsOf(gateway)).toEqual(['the upstream fails']);
  });

  test('frees the key of a write, since it never got anywhere', async () => {
    const [first] = (await openRing(size)) as [TestGateway];
    const asked = { ...exampleRequest('purchasePlan'), token: secret(), headers: { 'Idempotency-Key': 'once' } };
    for (let times = 0; times < 2; times++)
      expectProblem(await call(first.url, asked), { status: 508, code: 'loop_detected' });
  });
});

describe('Via', () => {
  type Sent = string | string[];

  const viaSent = async (gateway: TestGateway, upstream: ScriptedUpstream, via?: Sent) => {
    const headers = via === undefined ? {} : { Via: via };
    const answer = await call(gateway.url, { path: pathOf(READ), token: secret(), headers });
    return { answer, sent: answer.status === 200 ? (upstream.calls.at(-1)?.headers['via'] ?? '') : undefined };
  };

  async function open() {
    const world = await openWorld();
    world.upstream.on(
      callOf(READ),
      perCall((to) => goodAnswer(to, 1)),
    );
    return { ...world, via: (via?: Sent) => viaSent(world.gateway, world.upstream, via) };
  }

  test('names the gateway the same for each request, and the upstream gets no more of what the client says of its way', async () => {
    const { via } = await open();
    const { sent: own = '' } = await via();
    expect(own).toMatch(OURS);
    expect((await via('1.0 fred, 1.1 p.example (Apache/1.1)')).sent).toBe(own);
    expect(
      (await via('1.1 portico, 1.1 portico-short, 1.1 xportico-0123456789ab, 1.1 portico-0123456789abc')).sent,
    ).toBe(own);
  });

  test('keeps the gateways that came before, in their order', async () => {
    const { via } = await open();
    const { sent: own = '' } = await via();
    const before = '1.1 portico-0123456789ab, 1.0 squid,HTTP/2 portico-ABCDEFGHIJ_-\t(x)';
    expect((await via(before)).sent).toBe(`1.1 portico-0123456789ab, 1.1 portico-ABCDEFGHIJ_-, ${own}`);
  });

  test('with our id in it is a loop, wherever it stands and however it got there', async () => {
    const { via, upstream } = await open();
    const { sent: own = '' } = await via();
    const id = own.slice('1.1 '.length);
    const count = upstream.calls.length;
    const ways = [
      own,
      `1.0 fred, ${own}`,
      `${own},1.0 fred`,
      `HTTP/2.0 ${id} (edge, one)`,
      ['1.0 fred', own],
      `2 ${id}`,
    ];
    for (const way of ways) expectProblem((await via(way)).answer, { status: 508, code: 'loop_detected' });
    expect(upstream.calls.length).toBe(count);
    expect((await via(`1.1 x${id}`)).answer.status).toBe(200);
  });

  test('is the same on all instances with this upstream and the last of SECRETS, else another one', async () => {
    const { upstream } = await open();
    const idWith = async (env: Readonly<Record<string, string>>, base = '') => {
      const gateway = await startGateway(upstream.url + base, { env });
      onTestFinished(() => gateway.close());
      upstream.on(
        () => true,
        perCall((to) => goodAnswer({ ...to, path: to.path.replace(base, '') }, 1)),
      );
      return (await viaSent(gateway, upstream)).sent;
    };
    const other = secret('of-other-instances-than-these');
    const own = await idWith({ SECRETS });
    expect(await idWith({ SECRETS: `${other},${SECRETS}` })).toBe(own);
    const others = [
      await idWith({ SECRETS: other }),
      await idWith({ SECRETS }, '/base'),
      await idWith({}),
      await idWith({}),
    ];
    expect(new Set([own, ...others]).size).toBe(5);
  });

  test('does not stop what calls no upstream', async () => {
    const { via, gateway } = await open();
    const { sent: own = '' } = await via();
    for (const path of ['/readyz', '/problems/loop_detected', '/openapi.json'])
      expect((await call(gateway.url, { path, headers: { Via: own } })).status).toBe(200);
  });

  const OF_A_GATEWAY = {
    type: '/base/problems/loop_detected',
    code: 'loop_detected',
    request_id: 'one',
    retryable: false,
  };

  test.each([
    { detail: 'Loop Detected' },
    { code: 'loop_detected' },
    { ...OF_A_GATEWAY, type: 'about:blank' },
    { ...OF_A_GATEWAY, code: 'loop' },
    { ...OF_A_GATEWAY, request_id: undefined },
    { ...OF_A_GATEWAY, retryable: true },
  ])('has nothing to do with a 508 of the upstream’s own: %j', async (body) => {
    const { upstream, gateway } = await openWorld();
    upstream.on(() => true, json(508, JSON.stringify(body)));
    const token = secret();
    expectProblem(await call(gateway.url, { path: pathOf(READ), token }), {
      status: 502,
      code: 'upstream_bad_response',
    });
    const keyed = { ...exampleRequest('purchasePlan'), token, headers: { 'Idempotency-Key': 'once' } };
    const { outcome } = expectProblem(await call(gateway.url, keyed), { status: 502, code: 'upstream_bad_response' });
    expect(outcome).toBe('unknown');
    expectProblem(await call(gateway.url, keyed), { status: 409, code: 'outcome_unknown' });
    expect(warningsOf(gateway)).toEqual(['the upstream fails']);
  });

  test('is not needed where the whole problem of another gateway says so', async () => {
    const { upstream, gateway } = await openWorld();
    upstream.on(callOf(READ), json(508, JSON.stringify(OF_A_GATEWAY)));
    const answer = await call(gateway.url, { path: pathOf(READ), token: secret() });
    expectProblem(answer, { status: 508, code: 'loop_detected' });
  });
});
