import { describe, expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openFleet } from '../../support/fleet.ts';
import { exampleRequest } from '../../support/examples.ts';
import type { Asked } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, hang, reset } from '../../support/upstream.ts';
import { askAll, CACHED, isHit, NEVER_CACHED, openCache, seen } from './seen.ts';

const large = (bytes: number) => answer(200, { next: null, previous: null, results: [], x: 'x'.repeat(bytes) });
const pageOf = (page: number) => `/api/v2/payment/transaction/?page=${page}`;

/** Reads so many pages of that size. */
async function readPages(
  { call, upstream }: Pick<Asked, 'call' | 'upstream'>,
  token: string,
  pages: number,
  bytes: number,
) {
  for (let page = 1; page <= pages; page++) {
    upstream.next('listTransactions', large(bytes));
    await call(pageOf(page), { token });
  }
}

everywhere(
  says("An account's copies take at most a sixteenth of `CACHE_MAX_BYTES`"),
  async (stage) => {
    const hog = secret();
    await askAll(stage, CACHED);
    await readPages(stage, hog, 50, 10_000);
    let kept = 0;
    for (let page = 50; (await stage.call(pageOf(page), { token: hog })).cache?.includes('hit'); page--) kept++;
    expect(kept).toBe(6); // of 65,536 bytes
    for (const read of await askAll(stage, CACHED)) expect(seen(read)).toEqual([200, isHit, 1]);
  },
  { env: { CACHE_MAX_BYTES: '1048576' }, not: ['workerd', 'fleet'] }, // the next test
);

test(says('(in a shared store 256 of 32 kB)'), async () => {
  const { upstream, instances } = await openFleet();
  const token = secret();
  const kept = async (pages: number, bytes: number) => {
    await readPages({ ...instances[0]!, upstream }, token, pages, bytes);
    const reads = Array.from({ length: pages }, (_, page) => instances[1]!.call(pageOf(page + 1), { token }));
    return (await Promise.all(reads)).filter(({ cache }) => cache?.includes('hit')).length;
  };
  expect(await kept(1, 33_000)).toBe(0);
  expect(await kept(1, 30_000)).toBe(1); // of several two may have one place
  const most = await kept(300, 10);
  expect([most > 100, most <= 256]).toEqual([true, true]);
});

test(`${says('at most a sixteenth')}: copies outlive thousands of credentials that the upstream refuses`, async () => {
  const { ask, upstream } = openCache({ CACHE_MAX_BYTES: '524288', LOG_REQUESTS: 'failures' });
  await askAll({ ask }, CACHED);
  for (let sent = 0; sent < 2_000; sent++) {
    upstream.next('getSubscription', answer(401));
    await ask('getSubscription', { token: secret() });
  }
  for (const read of await askAll({ ask }, CACHED)) expect(seen(read)).toEqual([200, isHit, 1]);
});

const SLOTS = { UPSTREAM_MAX_CONNECTIONS: '32' };
/** The platform of Workers has limits of its own; and two instances have two such parts. */
const OWN_SLOTS = { env: SLOTS, not: ['workerd', 'fleet'] } as const;
const subuser = (id: number) => ({ path: `/api/v2/subuser/${id}/` });

everywhere(
  says('its calls of the upstream at most a quarter of `UPSTREAM_MAX_CONNECTIONS`'),
  async ({ ask, upstream, me }) => {
    const other = secret();
    for (const token of [me, other]) await ask('getSubscription', { token }); // both are accepted
    const held = Array.from({ length: 20 }, () => upstream.hold('getSubuser'));
    const busy = held.map((_, n) => ask('getSubuser', subuser(n)));
    await upstream.arrived('getSubuser', 8);
    for (let asked = 0; asked < 4; asked++) await ask('getPendingPayment', { token: other });
    expect(upstream.callsTo('getSubuser')).toHaveLength(8);
    for (const one of held) one.release();
    for (const { status } of await Promise.all(busy)) expect(status).toBe(200);
  },
  OWN_SLOTS,
);

everywhere(
  says('it shares limit and calls with all such credentials of its address.'),
  async ({ ask, upstream, me }) => {
    await ask('getSubscription');
    const held = Array.from({ length: 8 }, () => upstream.hold('getSubuser'));
    const strangers = Array.from({ length: 64 }, () => ask('getSubuser', { token: secret() }));
    await upstream.arrived('getSubuser', 8);
    for (const _ of [1, 2, 3, 4]) expect((await ask('getPendingPayment', { token: me })).status).toBe(200);
    expect(upstream.callsTo('getSubuser')).toHaveLength(8);
    for (const one of held) one.release();
    for (const { status } of await Promise.all(strangers)) expect(status).toBe(200);
  },
  OWN_SLOTS,
);

describe(says('Until this instance has seen the upstream accept a credential'), () => {
  test.each([
    ['strangers of many addresses have half of the calls', 64, false, 16],
    ['four accounts that it has accepted leave some to another', 4, true, 17],
  ])('%s', async (_, many, isAccepted, most) => {
    const { ask, pass, upstream } = openCache(SLOTS);
    const hogs = Array.from({ length: many }, (__, n) => ({ token: secret(), address: `192.0.2.${n}` }));
    for (const hog of [{}, ...(isAccepted ? hogs : [])]) await ask('getSubscription', hog);
    const held = Array.from({ length: most }, () => upstream.hold('getSubuser'));
    const busy = Array.from({ length: 64 }, (__, n) => ask('getSubuser', { ...subuser(n), ...hogs[n % many] }));
    await pass(0);
    expect((await ask('getPendingPayment')).status).toBe(200);
    expect(upstream.callsTo('getSubuser')).toHaveLength(most);
    for (const one of held) one.release();
    for (const { status } of await Promise.all(busy)) expect(status).toBe(200);
  });
});

test(says('where they have no room a keyed write is 503.'), async () => {
  const { ask, upstream } = openCache();
  upstream.next('createApiKey', answer(500));
  await ask('createApiKey', { key: 'unknown' });
  const first = await ask('purchasePlan', { key: 'first' });
  const answers = [];
  for (let n = 0; answers.at(-1)?.status !== 503 && n < 2_000; n++) {
    upstream.next('refreshSubuser', large(60_000));
    answers.push(await ask('refreshSubuser', { key: `${n}`, token: secret() }));
  }
  upstream.clear();
  const refused = { status: 503, code: 'store_unavailable', json: { retry_after: 60 } };
  for (const id of ['refreshSubuser', 'createApiKey', 'purchasePlan'] as const) {
    expect(await ask(id, { key: 'another' })).toMatchObject(refused);
    expect((await ask(id)).status).toBeLessThan(300);
  }
  expect(upstream.callsTo('refreshSubuser')).toHaveLength(answers.length); // but the last, and the one without a key
  const again = await ask('purchasePlan', { key: 'first' });
  expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([first.text, 'true']);
  expect(await ask('createApiKey', { key: 'unknown' })).toMatchObject({ status: 409, code: 'outcome_unknown' });
});

test(`${says('Records and marks of writes are never evicted before their time')}: nor is there a purchase without`, async () => {
  const { ask, upstream, me } = openCache();
  const others = [secret(), secret(), secret()]; // so that no circuit opens
  for (const token of [...others, ...others]) await askAll({ ask }, NEVER_CACHED, { token });
  for (let n = 0; n < 100; n++) {
    upstream.next('updateReferralConfig', answer(500));
    expect((await ask('updateReferralConfig')).status).toBe(502);
  }
  for (const id of ['updateReferralConfig', 'purchasePlan'] as const)
    expect(await ask(id)).toMatchObject({ status: 503, code: 'store_unavailable' });
  expect((await ask('createApiKey')).status).toBe(200);
  expect(upstream.callsOf(me)).toHaveLength(101);
});

const PLAIN = 'getPendingPayment';
const WRITE = 'createApiKey';

/** All slots are in use, by calls of as many accounts that the upstream has accepted. */
async function busyGateway(slots: number) {
  const gateway = openCache({ UPSTREAM_MAX_CONNECTIONS: String(slots) });
  const [loud, quiet, ...accounts] = Array.from({ length: slots + 2 }, () => secret());
  for (const token of [loud!, quiet!, ...accounts]) await gateway.ask(PLAIN, { token });
  gateway.upstream.calls.length = 0;
  const held = accounts.map(() => gateway.upstream.hold(PLAIN));
  const busy = accounts.map((token) => gateway.ask(PLAIN, { token }));
  await gateway.upstream.arrived(PLAIN, slots);
  gateway.upstream.calls.length = 0;
  /** Lets all of them go, and looks that they are good. */
  const release = async () => {
    for (const one of held) one.release();
    for (const one of busy) expect((await one).status).toBe(200);
  };
  return { ...gateway, release, loud: loud!, quiet: quiet! };
}

/** Equal ones would be one call. */
const nth = (n: number) => ({ path: `${exampleRequest(PLAIN).path}?nth=${n}` });

describe(says('the others wait up to 1 s and are then 503 overloaded'), () => {
  test.each([PLAIN, 'purchasePlan', 'loginSocial'] as const)('%s, and nothing is sent', async (id) => {
    const gateway = await busyGateway(2);
    const late = gateway.ask(id);
    await gateway.pass(1);
    const { status, json } = await late;
    expect([status, json]).toMatchObject([503, { code: 'overloaded', retry_after: 1, retryable: true }]);
    expect(json.outcome).toBeUndefined();
    await gateway.release();
    expect(gateway.upstream.calls).toEqual([]);
  });
});

describe(says('its calls of the upstream at most a quarter'), () => {
  test('who waits takes turns with one that has hundreds waiting', async () => {
    const gateway = await busyGateway(8);
    const { loud, quiet } = gateway;
    const noisy = Array.from({ length: 100 }, (_, n) => gateway.ask(PLAIN, { token: loud, ...nth(n) }));
    await gateway.pass(0);
    const late = gateway.ask(PLAIN, { token: quiet });
    await gateway.pass(0);
    await gateway.release();
    expect((await late).status).toBe(200);
    expect(gateway.upstream.calls.findIndex(({ token }) => token === quiet)).toBeLessThanOrEqual(1);
    for (const one of noisy) expect((await one).status).toBe(200);
  });

  test('a slot comes back after whatever a call comes to', async () => {
    const { ask, upstream, pass } = openCache({ UPSTREAM_MAX_CONNECTIONS: '1' });
    const replies = [answer(404), answer(500), reset(), answer(200, '<html>'), hang()];
    for (const reply of [...replies, ...replies]) {
      upstream.next(WRITE, reply);
      const asked = ask(WRITE, { token: secret() });
      await pass(reply === 'hang' ? 5 : 0);
      await asked;
    }
    expect(upstream.calls).toHaveLength(10);
  });
});
