import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { PATH as BATCH, transaction } from '../batch/helpers.ts';
import { cacheStatusOf } from '../cache/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { byCookie, cookieIn, signInWith } from '../sessions/helpers.ts';
import { call } from '../support/http.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { requestOf } from '../support/versioned-upstream.ts';
import { ask, bought, buy, fleetOfFile, isHit, newOrder } from './fleet.ts';
import { type Relay, startRelay } from './relay.ts';

const OVERVIEWS = ['account-overview', 'billing-overview', 'referral-overview'].map((name) => `/bff/v1/${name}`);

/** What is asked for a change: the note, and its record where there is a key; then another one in its place. */
const CHANGE = ['read', 'swap'];

/** Once more with another account, where a busy machine was too late to hear from its store. */
const counting =
  <Args extends unknown[]>(act: (...args: Args) => Promise<void>) =>
  (...args: Args) =>
    vi.waitFor(() => act(...args), { timeout: 50_000, interval: 100 });

describe.skipIf(!hasRedis)(`questions to the store${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  let relay: Relay;
  let at: NodeGateway;
  let other: NodeGateway;

  beforeAll(async () => {
    relay = await startRelay(fleet().redis.port);
    const behind = { STORE_URL: `redis://127.0.0.1:${relay.port}`, SESSIONS: 'true' };
    [at, other] = await Promise.all([fleet().start(behind), fleet().start()]);
  }, 30_000);

  afterAll(() => relay.close());

  /** What the instance asks the store meanwhile for its requests. */
  const during = async (act: () => Promise<unknown>): Promise<readonly string[]> => {
    const from = relay.asked.length;
    await act();
    return relay.asked.slice(from).filter((name) => name !== 'hello');
  };

  /** And of these what has to be known before the answer: a copy is kept behind it. */
  const askedFor = async (act: () => Promise<unknown>) => (await during(act)).filter((name) => name !== 'keep');

  const read = (token: string, path?: string) =>
    ask(at, 'getSubscription', { token, ...(path !== undefined && { path }) });

  test(
    'for a miss: one, and its copy is kept for the others',
    counting(async () => {
      const token = secret();
      expect(await askedFor(() => read(token))).toEqual(['read']);
      await expect.poll(async () => isHit(await ask(other, 'getSubscription', { token }))).toBe(true);
      expect(fleet().callsOf(token)).toHaveLength(1);
    }),
  );

  test.each(['its own', "another instance's"])(
    'for a hit on %s copy: one',
    counting(async (whose) => {
      const token = secret();
      await ask(whose === 'its own' ? at : other, 'getSubscription', { token });
      expect(await askedFor(async () => expect(isHit(await read(token))).toBe(true))).toEqual(['read']);
      expect(await during(async () => expect(isHit(await read(token))).toBe(true))).toEqual(['read']);
    }),
  );

  test.each(OVERVIEWS)(
    'for %s: one, from the upstream or from copies',
    counting(async (path) => {
      const token = secret();
      expect(await askedFor(async () => expect((await read(token, path)).status).toBe(200))).toEqual(['read']);
      const again = async () => expect(cacheStatusOf(await read(token, path))).toMatch(/^portico; hit/);
      expect(await askedFor(again)).toEqual(['read']);
    }),
  );

  test(
    'for a batch of twenty: one',
    counting(async () => {
      const token = secret();
      await read(token);
      const requests = Array.from({ length: 20 }, (_, n) => ({ id: String(n), path: transaction(n + 1) }));
      const batch = async () => {
        const body = { requests };
        expect((await ask(at, 'getSubscription', { token, method: 'POST', path: BATCH, body })).status).toBe(200);
      };
      for (let time = 0; time < 2; time++) expect(await askedFor(batch)).toEqual(['read']);
    }),
  );

  test(
    'for what is never cached: none',
    counting(async () => {
      expect(await during(() => ask(at, 'getApiKey', { token: secret() }))).toEqual([]);
      expect(await during(() => ask(at, 'createApiKey', { token: secret() }))).toEqual([]);
    }),
  );

  test(
    'for a request by cookie: one, of what is cached and of what is not',
    counting(async () => {
      const cookie = cookieIn(await call(at.url, signInWith(secret())));
      for (const id of ['getApiKey', 'getSubscription'] as const) {
        const asking = async () => expect((await call(at.url, byCookie(cookie, requestOf(id)))).status).toBe(200);
        await asking(); // after a sign-in the overview is read in the background
        expect(await askedFor(asking)).toEqual(['read']);
      }
    }),
  );

  test(
    'for a PATCH: three at most, and one more where another instance has changed the account',
    counting(async () => {
      const token = secret();
      const patch = async (through = at) =>
        expect((await ask(through, 'updateReferralConfig', { token })).status).toBe(200);
      expect(await during(patch)).toEqual([...CHANGE, 'swap']);
      expect(await during(patch)).toEqual(['swap', 'swap']); // by the note that it has seen last
      await patch(other);
      expect((await during(patch)).length).toBeLessThanOrEqual(4); // which is another one meanwhile
    }),
  );

  test(
    'for a purchase with a key: what takes the key, and what ends it',
    counting(async () => {
      const order = newOrder();
      const asked = await during(async () => expect(await buy(at, order)).toBe(bought(2)));
      expect(asked.filter((name) => name === 'swap')).toEqual(['swap', 'swap']);
      expect(asked.filter((name) => name !== 'swap' && name !== 'read')).toEqual([]);
      const again = async () => expect(await buy(at, order)).toBe(bought(2, { isReplay: true }));
      expect(new Set(await during(again))).toEqual(new Set(['read']));
    }),
  );

  test(
    'for a limit: a grant now and then, on the way of a read too',
    counting(async () => {
      const token = secret();
      const env = { RATE_LIMIT_PER_MINUTE: '1000', STORE_URL: `redis://127.0.0.1:${relay.port}` };
      const limited = await fleet().start(env);
      const asked = await during(async () => {
        for (let n = 0; n < 100; n++) expect((await ask(limited, 'getApiKey', { token })).status).toBe(200);
      });
      expect(new Set(asked)).toEqual(new Set(['count']));
      expect(asked.length).toBeLessThanOrEqual(4); // one, an eighth of what is left, and both again where a minute ends
    }),
  );

  test(
    'for a request over the limit: none, once that is known',
    counting(async () => {
      const token = secret();
      const few = await fleet().start({ RATE_LIMIT_PER_MINUTE: '1', STORE_URL: `redis://127.0.0.1:${relay.port}` });
      const status = async () => (await ask(few, 'getApiKey', { token })).status;
      await expect.poll(status).toBe(429);
      const asked = await during(async () => {
        for (let n = 0; n < 20; n++) await status();
      });
      expect(asked.length).toBeLessThanOrEqual(2); // where a minute ends
    }),
  );
});
