import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, answerOf, askBy, type Asked, headersOf, textOf } from '../support/gateway.ts';
import { call as send } from '../support/http.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { Upstream } from '../support/upstream.ts';
import { complaintsIn, startWorkerd, type Workerd } from '../support/workerd.ts';

const LONG = { UPSTREAM_TIMEOUT_MS: '60000', REQUEST_TIMEOUT_MS: '60000', RATE_LIMIT_PER_MINUTE: '0' };
const upstream = new Upstream();
let behind: Awaited<ReturnType<Upstream['listen']>>;

beforeAll(async () => {
  behind = await upstream.listen();
});
afterAll(() => behind.close());

const callOver =
  (workerd: () => Workerd, isolate: number): Asked['call'] =>
  async (path, { token = null, method, body, ...asking } = {}) => {
    const given = { path, method: method ?? (body === undefined ? 'GET' : 'POST'), body: textOf(body) };
    const got = await send(workerd().urls[isolate]!, { ...given, headers: headersOf({ token, body, ...asking }) });
    return answerOf({
      status: got.status,
      headers: new Headers(Object.entries(got.headers)),
      text: async () => got.text,
    });
  };

const newOrder = () => ({ token: secret(), key: secret() });
const gist = ({ status, code, headers }: Answer) =>
  code ?? `${status}${headers.get('Idempotency-Replayed') === 'true' ? ' replayed' : ''}`;

/** All that the objects have on disk, the write-ahead logs too, byte for byte. */
const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map(({ name, parentPath }) => `${name} ${readFileSync(join(parentPath, name)).toString('latin1')}`);

/** Nothing but the upstream's address is given: they find a secret among themselves. */
describe('isolates that were given no secret', () => {
  let workerd: Workerd;
  const all = [0, 1, 2].map((isolate) => askBy(callOver(() => workerd, isolate)));
  const [a, b, c] = all as [Asked['ask'], Asked['ask'], Asked['ask']];

  beforeAll(async () => {
    workerd = await startWorkerd({ ...LONG, UPSTREAM_BASE_URL: behind.url }, { isolates: 3 });
  });
  afterAll(() => workerd.kill());

  /** A copy is kept behind the answer. */
  const kept = async (token: string) => {
    await a('getSubscription', { token });
    for (const ask of [b, c]) {
      let cache: string | null = '';
      while (!cache?.includes('hit')) ({ cache } = await ask('getSubscription', { token }));
    }
  };

  test('share what one has asked for, and what was written through another is seen at once', async () => {
    const token = secret();
    await kept(token);
    for (let n = 0; n < 20; n++) {
      const [writer, ...readers] = n % 2 === 0 ? ([a, b, c] as const) : ([b, a, c] as const);
      expect((await writer('purchasePlan', { token })).status).toBe(200);
      for (const ask of [...readers, writer])
        expect((await ask('getSubscription', { token })).version).toBe(upstream.versionOf(token));
    }
  });

  test('keep no read through one from before the write through another', async () => {
    const token = secret();
    const slow = upstream.hold('getReferralConfig');
    const before = a('getReferralConfig', { token });
    await slow.call;
    expect((await b('updateReferralConfig', { token })).status).toBe(200);
    expect((await a('getReferralConfig', { token })).version).toBe(2); // nobody joins it
    slow.release();
    expect(await before).toMatchObject({ version: 1, cache: 'portico; fwd=miss' });
    for (const ask of all) expect((await ask('getReferralConfig', { token })).version).toBe(2);
  });

  test('send once what all are asked for at once with one key, and give all the same answer afterwards', async () => {
    const order = newOrder();
    const held = upstream.hold('purchasePlan');
    const first = a('purchasePlan', order);
    await held.call;
    const others = await Promise.all(Array.from({ length: 30 }, (_, n) => all[n % 3]!('purchasePlan', order)));
    expect(new Set(others.map(gist))).toEqual(new Set(['idempotency_in_progress']));
    held.release();
    expect(gist(await first)).toBe('200');
    for (const ask of all) expect(gist(await ask('purchasePlan', order))).toBe('200 replayed');
    expect(upstream.callsOf(order.token)).toHaveLength(1);
  });

  test('killed in mid-purchase, know that there was one, and all else that they knew', async () => {
    const [order, settled] = [newOrder(), newOrder()];
    await kept(settled.token);
    expect(gist(await a('createApiKey', settled))).toBe('200');
    const held = upstream.hold('purchasePlan');
    const dying = expect(a('purchasePlan', order)).rejects.toThrow();
    await held.call;
    expect(complaintsIn(workerd)).toEqual([]);
    workerd = await workerd.restart();
    await dying;
    held.release();
    const calls = upstream.calls.length;
    for (const ask of all) {
      expect(gist(await ask('purchasePlan', order))).toBe('idempotency_in_progress');
      expect(gist(await ask('createApiKey', settled))).toBe('200 replayed');
      expect((await ask('getSubscription', settled)).cache).toMatch('hit'); // the secret that they found is on the disk too
    }
    await workerd.pass(61);
    for (const ask of all) expect(gist(await ask('purchasePlan', order))).toBe('outcome_unknown');
    expect(upstream.calls).toHaveLength(calls);
  });

  test('have nothing on disk that gives a secret of anyone away, and heard no complaint of workerd', async () => {
    expect(complaintsIn(workerd)).toEqual([]);
    await workerd.kill();
    const files = filesIn(workerd.objects);
    expect(files.filter((text) => text.includes('CREATE TABLE kept')).length).toBeGreaterThan(2);
    expect(leaksIn(files.join('\n'))).toEqual([]);
  });
});
