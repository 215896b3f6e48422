import { beforeAll, describe, expect, test } from 'vitest';
import {
  ask,
  bought,
  buy,
  type Fleet,
  isHit,
  newOrder,
  passCurrent,
  prime,
  testWhatIsKept,
  untilNot,
  writeThrough,
} from '../fleet/fleet.ts';
import { differentFrom, gist, IN_PROGRESS, REUSED, UNKNOWN } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { byCookie, cookieIn, expectOver, SESSION, signInWith } from '../sessions/helpers.ts';
import type { OperationId } from '../support/account-api.ts';
import { call, type CallOptions } from '../support/http.ts';
import { idOf, markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { isOf, requestOf } from '../support/versioned-upstream.ts';
import { json, reset } from '../support/scripted-upstream.ts';
import { mixedFleetOfFile, testNoComplaint } from './mixed-fleet.ts';
import { DIRECTIONS, type Version } from './versions.ts';

/** What the last release says of it, too: that it is unknown, but not as `outcome`. */
const unknownAt = (version: Version) => (version === 'this version' ? UNKNOWN : '409 outcome_unknown');
const REPLAYED = bought(2, { isReplay: true });
const OUTCOME = '/bff/v1/outcome';
const LOOK = { path: SESSION } as const;
const PER_MINUTE = 20;

const by = (at: NodeGateway, cookie: string, options: CallOptions) => call(at.url, byCookie(cookie, options));
const signIn = async (at: NodeGateway, token: string) => cookieIn(await call(at.url, signInWith(token)));
const mark = async (at: NodeGateway, id: OperationId, token: string) => markOf((await ask(at, id, { token })).text);

// Where they do not understand each other, many of these wait for what never comes.
describe.skipIf(!hasRedis)(`the last release and this version with one Redis${SKIPPED}`, { timeout: 60_000 }, () => {
  const mixed = mixedFleetOfFile();
  let fleet: Fleet;
  let at: (version: Version) => NodeGateway;
  let limitedAt: (version: Version) => NodeGateway;

  beforeAll(async () => {
    ({ fleet } = mixed());
    [at, limitedAt] = await Promise.all([
      mixed().startBoth({ SESSIONS: 'true' }),
      mixed().startBoth({ RATE_LIMIT_PER_MINUTE: String(PER_MINUTE) }),
    ]);
  });

  describe.each(DIRECTIONS)('from %s to %s:', (from, to) => {
    test('a purchase is replayed, and its key taken for no other request', async () => {
      const order = newOrder();
      expect(await buy(at(from), order)).toBe(bought(2));
      expect(await buy(at(to), order)).toBe(REPLAYED);
      expect(gist(await ask(at(to), 'purchasePlan', { ...order, ...differentFrom('purchasePlan') }))).toBe(REUSED);
      expect(fleet.charges(order)).toBe(1);
    });

    test('one under way is known to be, with its key and without', async () => {
      const order = newOrder();
      const held = fleet.holdNext(order.token, 'purchasePlan');
      const buying = buy(at(from), order);
      await held.reached;
      expect(await buy(at(to), order)).toBe(IN_PROGRESS);
      expect(await buy(at(to), { token: order.token })).toBe(IN_PROGRESS);
      held.release();
      expect(await buying).toBe(bought(2));
      expect(await buy(at(to), order)).toBe(REPLAYED);
    });

    test('one of unknown outcome is never sent again', async () => {
      const order = newOrder();
      fleet.upstream.once((sent) => isOf(order.token, sent), reset());
      expect((await ask(at(from), 'purchasePlan', order)).json).toMatchObject({ status: 502, outcome: 'unknown' });
      expect(await buy(at(to), order)).toBe(unknownAt(to));
      expect(await buy(at(to), { token: order.token })).toBe(unknownAt(to)); // for a minute
      expect(fleet.charges(order)).toBe(1);
    });

    test('this version tells what became of a key of either, of the last release without saying when', async () => {
      const [done, lost] = [newOrder(), newOrder()];
      const outcomeOf = async ({ token, key }: ReturnType<typeof newOrder>) =>
        (await call(at('this version').url, { path: OUTCOME, token, headers: { 'Idempotency-Key': key } })).json;
      expect(await buy(at(from), done)).toBe(bought(2));
      const when = from === 'this version' ? { at: expect.any(String) } : {};
      expect(await outcomeOf(done)).toEqual({ state: 'done', status: 201, ...when });
      fleet.upstream.once((sent) => isOf(lost.token, sent), reset());
      expect((await ask(at(from), 'purchasePlan', lost)).json).toMatchObject({ outcome: 'unknown' });
      expect(await outcomeOf(lost)).toEqual({ state: 'unknown' });
    });

    test('one that was refused may be sent again', async () => {
      const order = newOrder();
      fleet.upstream.once((sent) => isOf(order.token, sent), json(400, [{ message: 'No.', code: 'no' }]));
      expect(await buy(at(from), order)).toBe('400 no');
      expect(await buy(at(to), order)).toBe(bought(2));
    });

    test('an instance killed in mid-purchase leaves its key taken', async () => {
      const order = newOrder();
      const one = await mixed().start(from, { REQUEST_TIMEOUT_MS: '1000', UPSTREAM_TIMEOUT_MS: '1000' });
      const held = fleet.holdNext(order.token, 'purchasePlan');
      const sent = buy(one, order).catch(() => 'cut');
      await held.reached;
      await one.kill();
      expect(await sent).toBe('cut');
      expect(await buy(at(to), order)).toBe(IN_PROGRESS);
      expect(await untilNot([IN_PROGRESS], () => buy(at(to), order))).toBe(unknownAt(to));
      expect(fleet.charges(order)).toBe(1);
    });

    test('of many with one key at once one is sent', async () => {
      const order = newOrder();
      const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => buy(at(n % 2 === 0 ? from : to), order)));
      expect(answers.filter((answer) => answer === bought(2))).toHaveLength(1);
      expect(answers.filter((answer) => ![bought(2), REPLAYED, IN_PROGRESS].includes(answer))).toEqual([]);
      expect(fleet.charges(order)).toBe(1);
    });

    test('what one has read is a hit at the other', async () => {
      const token = secret();
      await prime(at(from), 'getSubscription', { token });
      const calls = fleet.callsOf(token).length;
      expect(isHit(await ask(at(to), 'getSubscription', { token }))).toBe(true);
      expect(fleet.callsOf(token)).toHaveLength(calls);
    });

    describe.each([
      ['updateReferralConfig', 'getReferralConfig'],
      ['refreshSubuser', 'getSubuser'],
      ['purchasePlan', 'listTransactions'],
    ] as const)('%s and %s', (write, read) => {
      test('a copy from before a write is given by neither after it', async () => {
        const token = secret();
        for (const version of [from, to]) await prime(at(version), read, { token });
        await writeThrough(at(from), write, { token });
        for (const version of [to, from, to]) expect(await mark(at(version), read, token)).toBe(2);
      });

      test('nor while it is under way, nor what was read meanwhile', async () => {
        const token = secret();
        for (const version of [from, to]) await prime(at(version), read, { token });
        const [reading, writing] = [fleet.holdNext(token, read), fleet.holdNext(token, write)];
        const written = writeThrough(at(from), write, { token });
        await writing.reached;
        await passCurrent();
        const slow = ask(at(to), read, { token });
        await reading.reached;
        expect(isHit(await ask(at(to), read, { token }))).toBe(false);
        writing.release();
        await written;
        reading.release();
        expect(markOf((await slow).text)).toBe(1);
        for (const version of [to, from, to]) expect(await mark(at(version), read, token)).toBe(2);
      });
    });

    test('a 401 of the upstream drops the copies of both', async () => {
      const token = secret();
      for (const version of [from, to]) await prime(at(version), 'getSubscription', { token });
      fleet.upstream.once(
        (sent) => isOf(token, sent) && idOf(sent) === 'getReferralConfig',
        json(401, { detail: 'No.' }),
      );
      expect((await ask(at(from), 'getReferralConfig', { token })).status).toBe(401);
      await passCurrent();
      expect(isHit(await ask(at(to), 'getSubscription', { token }))).toBe(false);
    });

    test('a 429 of the upstream holds both back', async () => {
      const token = secret();
      fleet.upstream.once((sent) => isOf(token, sent), json(429, { detail: 'Slow down.' }, { 'Retry-After': '60' }));
      const status = async (version: Version, id: OperationId) =>
        String((await ask(at(version), id, { token })).status);
      expect(await status(from, 'getSubscription')).toBe('429');
      await untilNot(['201'], () => status(to, 'purchasePlan')); // no answer waits until the store knows
      const calls = fleet.callsOf(token).length;
      for (const id of ['purchasePlan', 'getReferralConfig'] as const) expect(await status(to, id)).toBe('429');
      expect(fleet.callsOf(token)).toHaveLength(calls);
    });

    test('a session goes on, of the same account, and ends for both', async () => {
      const cookie = await signIn(at(from), secret());
      const known = (await by(at(from), cookie, LOOK)).json;
      expect(known).toMatchObject({ authenticated: true });
      expect((await by(at(to), cookie, LOOK)).json).toEqual(known);
      expect((await by(at(to), cookie, requestOf('createApiKey'))).status).toBe(201);
      expect((await by(at(to), cookie, { ...LOOK, method: 'DELETE' })).status).toBe(204);
      for (const version of [from, to])
        for (const options of [LOOK, requestOf('getApiKey'), requestOf('purchasePlan')])
          expectOver(await by(at(version), cookie, options));
    });

    test('a sign-out everywhere ends those of both, and what begins afterwards goes on', async () => {
      const token = secret();
      const before = [await signIn(at(from), token), await signIn(at(to), token)];
      const everywhere = { path: `${SESSION}?everywhere=true`, method: 'DELETE' };
      expect((await by(at(from), before[1]!, everywhere)).status).toBe(204);
      const after = [await signIn(at(from), token), await signIn(at(to), token)];
      for (const version of [to, from]) {
        for (const cookie of before) expectOver(await by(at(version), cookie, LOOK));
        for (const cookie of after) expect((await by(at(version), cookie, requestOf('getApiKey'))).status).toBe(200);
      }
    });

    test('requests count in one limit', async () => {
      const token = secret();
      const statuses: number[] = [];
      for (let n = 0; n < 2 * PER_MINUTE; n++)
        statuses.push((await ask(limitedAt(n < PER_MINUTE ? from : to), 'getSubscription', { token })).status);
      const passed = statuses.filter((status) => status === 200).length;
      expect(statuses.filter((status) => status === 429)).toHaveLength(statuses.length - passed);
      expect(passed).toBeGreaterThanOrEqual(PER_MINUTE / 2); // some are held in advance
      expect(passed).toBeLessThan(PER_MINUTE + 5); // where the store is late, an instance counts on its own
    });
  });

  testWhatIsKept(() => fleet);
  testNoComplaint(mixed);
});
