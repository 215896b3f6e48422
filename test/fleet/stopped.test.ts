import { beforeAll, describe, expect, test } from 'vitest';
import { cacheStatusOf } from '../cache/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { ask, bought, buy, buyOnce, fleetOfFile, isHit, newOrder, prime } from './fleet.ts';
import { letPass } from './time.ts';

/** Each copy is stale as soon as it is kept. */
const STALE = { CACHE_POLICY: '{"getSubscription":{"fresh":0,"stale":300}}' };
const isStale = (status: string | undefined) => /^portico; hit; ttl=-\d+$/.test(status ?? '');

/** Writes while the other one stands still. */
const WRITES = 8;

const preloading = (code: string) => `--import=data:text/javascript,${encodeURIComponent(code)}`;

describe.skipIf(!hasRedis)(`of three instances one${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let a: NodeGateway;
  let b: NodeGateway;

  beforeAll(async () => {
    [a, b] = await Promise.all([fleet().start(STALE), fleet().start(STALE)]);
  }, 30_000);

  /** The process stands still when it has connected to the upstream, as on a machine that is put to sleep. */
  const standingStill = () => `
    import { Socket } from 'node:net';
    const { emit } = Socket.prototype;
    Socket.prototype.emit = function (name, ...args) {
      if (name === 'connect' && this.remotePort === ${new URL(fleet().upstream.url).port})
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1200);
      return emit.call(this, name, ...args);
    };`;

  /** Copies that are stale, and others that are fresh, are answered at once, through both that are left. */
  const expectCopies = async (token: string) => {
    for (const at of [a, b]) {
      expect(isStale(cacheStatusOf(await ask(at, 'getSubscription', { token })))).toBe(true);
      expect(isHit(await ask(at, 'getReferralConfig', { token }))).toBe(true);
    }
  };

  /** An account of which the instance has made copies, and another one has read them. */
  const primed = async (at: NodeGateway) => {
    const token = secret();
    for (const one of [at, a, b]) {
      await prime(one, 'getReferralConfig', { token });
      expect((await ask(one, 'getSubscription', { token })).status).toBe(200);
    }
    return token;
  };

  test('is killed: the others go on having copies at once, and write', async () => {
    const one = await fleet().start(STALE);
    const token = await primed(one);
    one.signal('SIGKILL');
    await one.exited;
    await expectCopies(token);
    expect((await ask(b, 'updateReferralConfig', { token })).status).toBe(200);
    for (const at of [a, b]) expect(markOf((await ask(at, 'getReferralConfig', { token })).text)).toBe(2);
  });

  test('is stopped for a while: meanwhile the others have copies and write, and then it gives nothing old', async () => {
    const one = await fleet().start(STALE);
    const token = await primed(one);
    one.signal('SIGSTOP');
    let version = 1;
    while (version < WRITES) {
      await expectCopies(token);
      expect((await ask(version % 2 === 0 ? a : b, 'updateReferralConfig', { token })).status).toBe(200);
      version++;
      for (const at of [a, b]) expect(markOf((await ask(at, 'getReferralConfig', { token })).text)).toBe(version);
      for (const at of [a, b]) await prime(at, 'getReferralConfig', { token });
    }
    one.signal('SIGCONT');
    expect(markOf((await ask(one, 'getReferralConfig', { token })).text)).toBe(version);
  });

  test('is killed while it writes: nothing of that is answered from a copy or kept until its mark is over', async () => {
    const token = secret();
    for (const at of [a, b])
      for (const id of ['getReferralConfig', 'getSubscription'] as const) {
        expect((await ask(at, id, { token })).status).toBe(200);
      }
    const one = await fleet().start({ REQUEST_TIMEOUT_MS: '1000' });
    const held = fleet().holdNext(token, 'updateReferralConfig');
    const cut = expect(ask(one, 'updateReferralConfig', { token })).rejects.toThrow();
    await held.reached;
    one.signal('SIGKILL');
    await cut;
    const statuses = async () => {
      const answers = [];
      for (const at of [a, b, a, b]) answers.push(cacheStatusOf(await ask(at, 'getReferralConfig', { token })));
      return answers;
    };
    expect(await statuses()).toEqual(Array.from({ length: 4 }, () => 'portico; fwd=miss'));
    expect(isStale(cacheStatusOf(await ask(a, 'getSubscription', { token })))).toBe(true); // which it does not invalidate
    await letPass(fleet(), 40_000);
    expect(await statuses()).toEqual(Array.from({ length: 4 }, () => 'portico; fwd=miss'));
    fleet().change(token); // the upstream does it late
    await letPass(fleet(), 21_000);
    for (const at of [a, b]) expect(markOf((await ask(at, 'getReferralConfig', { token })).text)).toBe(2);
    for (const at of [a, b]) await prime(at, 'getReferralConfig', { token });
  });

  test('stands still between a purchase that it announced and its first byte, until its time is up: it does not send it', async () => {
    const order = newOrder();
    const one = await fleet().start({ REQUEST_TIMEOUT_MS: '1000', NODE_OPTIONS: preloading(standingStill()) });
    expect(await buyOnce(one, order)).toBe('504 upstream_timeout');
    expect(fleet().charges(order)).toBe(0);
    expect(await buy(b, order)).toBe(bought(2));
  });
});
