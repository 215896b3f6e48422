import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { type Asked, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { summaryOf } from './helpers.ts';

/** A read that is kept, one that is not, and a write. */
const ALL = ['getSubscription', 'getPendingPayment', 'purchasePlan'] as const;
const OVERVIEW = '/bff/v1/account-overview';
const TIMEOUT = /^504 upstream_timeout( unknown)?$/;

/** As long as the answer is not there: `undefined`. */
const watched = (asked: ReturnType<Asked['ask']>) => {
  let seen: string | undefined;
  void asked.then((one) => (seen = summaryOf(one)));
  return () => seen;
};

for (const [words, env] of [
  ['one attempt', { UPSTREAM_TIMEOUT_MS: '2000', REQUEST_TIMEOUT_MS: '3000' }],
  ['one request with all attempts and sections', { UPSTREAM_TIMEOUT_MS: '3000', REQUEST_TIMEOUT_MS: '2000' }],
] as const)
  everywhere(
    says(words),
    async ({ ask, upstream, pass }) => {
      for (const id of ALL) {
        const seen = [upstream.hold(id), ask(id)] as const;
        const isOver = watched(seen[1]);
        const call = await seen[0].call;
        await pass(1.999);
        expect(isOver()).toBeUndefined();
        await pass(0.001);
        expect(summaryOf(await seen[1])).toMatch(TIMEOUT);
        await call.left;
        expect(upstream.callsTo(id)).toHaveLength(1);
      }
    },
    { env, time: true, not: ['workerd'] }, // where no timer is moved
  );

const env = { UPSTREAM_TIMEOUT_MS: '2000', REQUEST_TIMEOUT_MS: '3000' };

test(`${says('`UPSTREAM_TIMEOUT_MS`, `REQUEST_TIMEOUT_MS` | `5000`, `10000`')}: each attempt has its own`, async () => {
  const { ask, upstream, pass } = openGateway();
  const held = [1, 2, 3].map(() => upstream.hold('getApiKey'));
  const asked = ask('getApiKey');
  for (const [nth, one] of held.entries()) {
    await one.call;
    await pass(nth < 2 ? 4.9 : 0.1);
    one.release(nth < 2 ? answer(503) : undefined);
  }
  expect(summaryOf(await asked)).toMatch(/^200/);
});

describe(says('one request with all attempts'), () => {
  test.each(ALL.slice(0, 2))('the second attempt of %s has what is left', async (id) => {
    const { ask, upstream, pass } = openGateway(env);
    const [first, second] = [upstream.hold(id), upstream.hold(id)];
    const seen = watched(ask(id));
    await first.call;
    await pass(1.9);
    first.release(answer(503));
    await second.call;
    await pass(1.099);
    expect(seen()).toBeUndefined();
    await pass(0.001);
    expect(seen()).toMatch(TIMEOUT);
    await pass(10);
    expect(upstream.calls).toHaveLength(2);
  });

  test.each(['listNotifications', 'getSubscription'] as const)('sections together, though %s is slow', async (id) => {
    const { call, upstream, pass } = openGateway(env);
    const held = upstream.hold(id);
    const asked = call(OVERVIEW);
    await held.call;
    await pass(2);
    const { status, json } = await asked;
    if (id === 'getSubscription') expect([status, json.code]).toEqual([504, 'upstream_timeout']);
    else expect(json.errors).toMatchObject([{ section: 'notifications', code: 'upstream_timeout', status: 504 }]);
  });

  test.each(['getApiKey', 'createApiKey'] as const)('the waiting for a slot is part of it: %s', async (id) => {
    const { ask, upstream, pass, clock } = openGateway({ REQUEST_TIMEOUT_MS: '800', UPSTREAM_MAX_CONNECTIONS: '1' });
    const held = upstream.hold('purchasePlan');
    const busy = ask('purchasePlan', { token: secret() });
    await held.call;
    const late = ask(id);
    await pass(0);
    clock.advance(801); // in one step: the one's time is up in the same moment as the other's
    held.release();
    await busy;
    expect(summaryOf(await late)).toBe('504 upstream_timeout');
    expect(upstream.callsTo(id)).toEqual([]);
  });
});

/** Asks and leaves: resolves when the gateway has given the call up. */
async function leave({ ask, upstream }: Pick<Asked, 'ask' | 'upstream'>, id: 'getApiKey' | 'getSubscription') {
  const client = new AbortController();
  const held = upstream.hold(id);
  const asked = ask(id, { token: secret(), signal: client.signal }).catch(() => undefined);
  const { left } = await held.call;
  client.abort();
  await left;
  await asked;
}

everywhere(
  says('A client that leaves cancels what only it waited for'),
  async ({ ask, upstream }) => {
    for (const id of ['getApiKey', 'getSubscription'] as const) await leave({ ask, upstream }, id);
  },
  { not: ['workerd'] }, // which hears of it only where the connection is reset: test/worker/leaving.test.ts
);

everywhere(
  says('but not a write that was sent'),
  async ({ ask, upstream, idle }) => {
    const client = new AbortController();
    const held = upstream.hold('purchasePlan');
    const left = ask('purchasePlan', { key: 'key', signal: client.signal }).catch(() => undefined);
    await held.call;
    client.abort();
    await leave({ ask, upstream }, 'getApiKey'); // the gateway has heard of him by now: he left before this one
    held.release();
    await idle();
    await left;
    expect(summaryOf(await ask('purchasePlan', { key: 'key' }))).toMatch(/^200 .* replayed$/);
    expect(upstream.callsTo('purchasePlan')).toHaveLength(1);
  },
  { not: ['workerd'] }, // where nobody can tell when it is over
);
