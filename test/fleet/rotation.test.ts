import { beforeAll, describe, expect, test } from 'vitest';
import { ask, bought, buy, fleetOfFile, newOrder, type Order, prime, testWhatIsKept } from './fleet.ts';
import { IN_PROGRESS } from '../idempotency/helpers.ts';
import type { NodeGateway } from '../runtime/node-gateway.ts';
import { byCookie, cookieIn, expectOver, SESSION, signInWith } from '../sessions/helpers.ts';
import { call, type CallOptions } from '../support/http.ts';
import { markOf } from '../support/marked.ts';
import { hasRedis, SKIPPED } from '../support/redis.ts';
import { barrier, hold, reply } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { isOf, requestOf } from '../support/versioned-upstream.ts';

const LOOK = { path: SESSION } as const;
const SIGN_OUT = { path: SESSION, method: 'DELETE' } as const;

const by = (at: NodeGateway, cookie: string, options: CallOptions) => call(at.url, byCookie(cookie, options));
const signIn = async (at: NodeGateway, token: string) => cookieIn(await call(at.url, signInWith(token)));

const REPLAYED = bought(2, { isReplay: true });
const [OLD, NEW, NEWER] = [
  secret('old-one-of-the-fleet'),
  secret('new-one-of-the-fleet'),
  secret('newer-one-of-the-fleet'),
];
const PER_MINUTE = 60;

/** As the operator lists them, one restart after the other: what is new is known first, then it seals, and the last one stays. */
const STAGES = {
  old: OLD,
  'new known': `${OLD},${NEW},${OLD}`,
  new: `${NEW},${OLD}`,
  'newer known': `${NEW},${NEWER},${OLD}`,
  newer: `${NEWER},${NEW},${OLD}`,
  without: `${NEWER},${OLD}`,
} as const;

type Stage = keyof typeof STAGES;

/** Which of them stand side by side while instances are restarted. */
const STEPS: readonly (readonly [Stage, Stage])[] = [
  ['old', 'new known'],
  ['new known', 'new'],
  ['new', 'newer known'],
  ['newer known', 'newer'],
  ['newer', 'without'],
];

describe.skipIf(!hasRedis)(`while the secret is changed${SKIPPED}`, () => {
  const fleet = fleetOfFile();
  const at = new Map<Stage, NodeGateway>();
  const instance = (stage: Stage) => at.get(stage)!;

  beforeAll(async () => {
    await Promise.all(
      (Object.keys(STAGES) as Stage[]).map(async (stage) =>
        at.set(
          stage,
          await fleet().start({
            SECRETS: STAGES[stage],
            SESSIONS: 'true',
            RATE_LIMIT_PER_MINUTE: String(PER_MINUTE),
          }),
        ),
      ),
    );
  }, 60_000);

  const directions = STEPS.flatMap(([one, other]) => [[one, other] as const, [other, one] as const]);

  describe.each(directions)('through one with `%s` and one with `%s`', (one, other) => {
    const [from, to] = [() => instance(one), () => instance(other)];

    test('a key is replayed', async () => {
      const order = newOrder();
      expect(await buy(from(), order)).toBe(bought(2));
      expect(await buy(to(), order)).toBe(REPLAYED);
      expect(await buy(from(), order)).toBe(REPLAYED);
      expect(fleet().charges(order)).toBe(1);
    });

    test('a key that is under way is, and so is what it buys', async () => {
      const order = newOrder();
      const gate = barrier();
      fleet().upstream.once((asked) => isOf(order.token, asked), reply(hold(gate), fleet().answer()));
      const buying = buy(from(), order);
      await gate.reached;
      expect(await buy(to(), order)).toBe(IN_PROGRESS);
      expect(await buy(to(), { token: order.token })).toBe(IN_PROGRESS); // the same without a key
      gate.release();
      expect(await buying).toBe(bought(2));
      expect(await buy(to(), order)).toBe(REPLAYED);
    });

    test('of many with one key at once one is sent', async () => {
      const order = newOrder();
      await Promise.all(Array.from({ length: 20 }, (_, n) => buy(n % 2 === 0 ? from() : to(), order)));
      for (const gateway of [from(), to()]) expect(await buy(gateway, order)).toBe(REPLAYED);
      expect(fleet().charges(order)).toBe(1);
    });

    test('a session goes on, is of the same account, and a sign-out of it holds', async () => {
      const cookie = await signIn(from(), secret());
      const known = (await by(from(), cookie, LOOK)).json;
      expect(known).toMatchObject({ authenticated: true });
      expect((await by(to(), cookie, LOOK)).json).toEqual(known);
      for (const id of ['getApiKey', 'createApiKey'] as const)
        expect((await by(to(), cookie, requestOf(id))).status).toBeLessThan(300);
      expect((await by(to(), cookie, SIGN_OUT)).status).toBe(204);
      for (const gateway of [from(), to()]) expectOver(await by(gateway, cookie, LOOK));
    });

    test('what was there before a write is not read', async () => {
      const token = secret();
      for (const gateway of [from(), to()]) await prime(gateway, 'getReferralConfig', { token });
      for (let version = 2; version < 6; version++) {
        const [writer, reader] = version % 2 === 0 ? [from(), to()] : [to(), from()];
        expect((await ask(writer, 'updateReferralConfig', { token })).status).toBe(200);
        for (const gateway of [reader, writer, reader, writer])
          expect(markOf((await ask(gateway, 'getReferralConfig', { token })).text)).toBe(version);
        for (const gateway of [reader, writer]) await prime(gateway, 'getReferralConfig', { token });
      }
    });

    test('a slow read from before a write is not stored', async () => {
      const token = secret();
      const gate = barrier();
      fleet().upstream.once((asked) => isOf(token, asked), reply(hold(gate), fleet().answerOf(1)));
      const slow = ask(from(), 'getReferralConfig', { token });
      await gate.reached;
      await ask(to(), 'updateReferralConfig', { token });
      gate.release();
      await slow;
      for (const gateway of [from(), to(), from(), to()])
        expect(markOf((await ask(gateway, 'getReferralConfig', { token })).text)).toBe(2);
    });

    test('limits are not doubled', async () => {
      const token = secret();
      let passed = 0;
      const minutes = await fleet().minutesOf(() =>
        Promise.all(
          Array.from({ length: 2 * PER_MINUTE }, async (_, n) => {
            if ((await ask(n % 2 === 0 ? from() : to(), 'getApiKey', { token })).status === 200) passed++;
          }),
        ),
      );
      expect(passed).toBeLessThanOrEqual(PER_MINUTE * minutes);
    });
  });

  test('a copy is read by all, since the last secret stays and seals it', async () => {
    const token = secret();
    await prime(instance('new'), 'getReferralConfig', { token });
    for (const stage of Object.keys(STAGES) as Stage[]) await prime(instance(stage), 'getReferralConfig', { token });
    expect(fleet().callsOf(token)).toHaveLength(1);
  });

  test('a session sealed with a secret unknown there is 401, which does not end it', async () => {
    const cookie = await signIn(instance('new'), secret());
    expectOver(await by(instance('old'), cookie, LOOK));
    expect((await by(instance('new'), cookie, LOOK)).json).toMatchObject({ authenticated: true });
  });

  test('a session goes through all of the restarts in which its secret is listed', async () => {
    const sealed: { readonly cookie: string; readonly sealedWith: string }[] = [];
    for (const [stage, secrets] of Object.entries(STAGES) as [Stage, string][]) {
      const [first = '', ...others] = secrets.split(',');
      sealed.push({ cookie: await signIn(instance(stage), secret()), sealedWith: first });
      for (const { cookie, sealedWith } of sealed) {
        const isListed = [first, ...others].includes(sealedWith);
        expect((await by(instance(stage), cookie, LOOK)).status).toBe(isListed ? 200 : 401);
      }
    }
  });

  test('a key goes through all of the restarts', async () => {
    const orders: Order[] = [];
    for (const stage of Object.keys(STAGES) as Stage[]) {
      const order = newOrder();
      expect(await buy(instance(stage), order)).toBe(bought(2));
      orders.push(order);
      for (const known of orders) expect(await buy(instance(stage), known)).toBe(REPLAYED);
    }
    for (const order of orders) expect(fleet().charges(order)).toBe(1);
  });

  testWhatIsKept(fleet);
});
