import { describe, expect, test } from 'vitest';
import type { OperationId } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import type { Asked } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { PROOFS, UNKNOWNS } from '../07-trouble/helpers.ts';
import { askAll, beginOn, CACHED, isHit, MISS, NO_STORE, openCache, seen, UNKEPT, warm } from './seen.ts';

everywhere(
  says(
    'Once the gateway has answered a write, no later read of that account, on any instance of the fleet, gives what was there before',
  ),
  async ({ ask }) => {
    for (let version = 1; version < 4; version++) {
      for (const id of ['getSubscription', 'listTransactions', 'getSubuser'] as const) {
        expect(seen(await ask(id))).toEqual([200, MISS, version]);
        expect(seen(await ask(id))).toEqual([200, isHit, version]);
      }
      expect((await ask('purchasePlan', { key: `${version}` })).status).toBe(200);
    }
  },
);

/** Reads everything, writes, and reads it again. */
const touches = (write: OperationId, touched: readonly OperationId[]) => async (stage: Asked) => {
  const other = secret();
  await warm(stage, CACHED);
  await warm(stage, CACHED, { token: other });
  expect((await stage.ask(write)).status).toBeLessThan(300);
  for (const [n, read] of (await askAll(stage, CACHED)).entries()) {
    const isTouched = touched.includes(CACHED[n]!);
    expect(seen(read), CACHED[n]).toEqual(isTouched ? [200, MISS, 2] : [200, isHit, 1]);
  }
  for (const read of await askAll(stage, CACHED, { token: other })) expect(seen(read)).toEqual([200, isHit, 1]);
};

everywhere(says('PATCH referral config → referral config'), touches('updateReferralConfig', ['getReferralConfig']));
everywhere(
  says('DELETE payment method → payment methods, subscription'),
  touches('deletePaymentMethod', ['listPaymentMethods', 'getPaymentMethod', 'getSubscription']),
);
everywhere(says('sub-user refresh → that sub-user'), touches('refreshSubuser', ['getSubuser']));
everywhere(says('list refresh → sub-users'), touches('refreshProxyList', ['getSubuser']));
everywhere(says('DELETE IP authorization → that one'), touches('deleteIpAuthorization', ['getIpAuthorization']));
everywhere(says('purchase → everything.'), touches('purchasePlan', CACHED));
test.each(['createApiKey', 'startIdVerification', 'loginSocial'] as const)(
  `${says('What each touches')}: %s nothing that is cached`,
  async (id) => touches(id, [])(openCache()),
);

const subusers = (...ids: readonly string[]) => ids.map((id) => `/api/v2/subuser/${id}/`);
const authorizations = (...ids: readonly string[]) => ids.map((id) => `/api/v2/proxy/ipauthorization/${id}/`);

test.each<[path: string, write: OperationId, touched: readonly string[], others: readonly string[]]>([
  [
    '/api/v2/subuser/05/refresh/',
    'refreshSubuser',
    [...subusers('5', '05', '0005'), '/api/v2/subuser/5/?plan_id=3'],
    subusers('6', '50', '15', '0'),
  ],
  [
    '/api/v2/proxy/list/refresh/?plan_id=3',
    'refreshProxyList',
    [...subusers('1', '2'), '/api/v2/subuser/2/?plan_id=4'],
    authorizations('7'),
  ],
  [
    '/api/v2/proxy/ipauthorization/7/?plan_id=3',
    'deleteIpAuthorization',
    [...authorizations('7', '07'), '/api/v2/proxy/ipauthorization/7/?plan_id=3'],
    authorizations('8', '70', 'a7', '7-', 'A_b-7'),
  ],
])(
  `${says('What each touches')}: at %s that thing under all its names, and no other`,
  async (path, write, touched, others) => {
    const { ask, call } = openCache();
    const read = async (paths: readonly string[]) => (await Promise.all(paths.map((one) => call(one)))).map(seen);
    await read([...touched, ...others]);
    await ask(write, { path });
    expect(await read(touched)).toEqual(touched.map(() => [200, MISS, 2]));
    expect(await read(others)).toEqual(others.map(() => [200, isHit, 1]));
  },
);

everywhere(says('a read under way when the write began is not kept.'), async (stage) => {
  const slow = await beginOn(stage, 'getReferralConfig'); // its answer is of now
  await stage.ask('updateReferralConfig');
  expect(seen(await stage.ask('getReferralConfig'))).toEqual([200, MISS, 2]);
  expect(await slow.end()).toEqual([200, UNKEPT, 1]);
  expect(seen(await stage.ask('getReferralConfig'))).toEqual([200, isHit, 2]);
  expect(stage.upstream.callsTo('getReferralConfig')).toHaveLength(2);
});

const PAIRS: readonly (readonly [OperationId, OperationId])[] = [
  ['updateReferralConfig', 'getReferralConfig'],
  ['refreshSubuser', 'getSubuser'],
  ['purchasePlan', 'listTransactions'],
];
const LONG = { CACHE_POLICY: JSON.stringify(Object.fromEntries(PAIRS.map(([, read]) => [read, { fresh: 60 }]))) };

describe.each(PAIRS)(`${says('no later read of that account')}: %s and %s`, (write, read) => {
  test('while it is under way no copy is answered; no read is kept, nor one that ends after it', async () => {
    const { see, begin } = openCache();
    await see(read);
    const writing = await begin(write);
    for (const _ of [1, 2]) expect(await see(read)).toEqual([200, UNKEPT, 1]);
    const slow = await begin(read);
    await writing.end();
    expect(await slow.end()).toEqual([200, UNKEPT, 1]);
    expect(await see(read)).toEqual([200, MISS, 2]);
  });

  test('a failing read from before it is not answered with the copy from before it', async () => {
    const { ask, see, begin, pass } = openCache();
    await see(read);
    await pass(400);
    const slow = await begin(read);
    await ask(write);
    expect(await slow.end(answer(500))).toEqual([502, null, undefined]);
  });

  test.each(UNKNOWNS)('%s for an answer: no copy from before it then, not even on failure', async (_, reply) => {
    const { ask, see, pass, upstream, me } = openCache(LONG);
    await see(read);
    upstream.next(write, reply);
    const writing = ask(write);
    await pass(5); // where nothing else ends it
    expect((await writing).json.outcome).toBe('unknown');
    upstream.next(read, answer(500));
    expect(await see(read)).toEqual([502, null, undefined]);
    upstream.change(me); // it did happen
    expect(await see(read)).toEqual([200, UNKEPT, 2]);
  });

  test.each(PROOFS.filter(([name]) => name.startsWith('no connection')))(
    `%s: ${says('What proves that nothing happened')}, and the copy is there again`,
    async (_, reply) => {
      const { ask, see, upstream, me } = openCache();
      await see(read);
      upstream.next(write, reply);
      expect((await ask(write)).status).toBeGreaterThan(500);
      upstream.change(me); // elsewhere
      expect(await see(read)).toEqual([200, isHit, 1]);
    },
  );
});

everywhere(
  says('A write of unknown outcome counts as done, and for 60 s nothing that it touches is cached.'),
  async ({ ask, upstream, pass, me }) => {
    await ask('getReferralConfig');
    upstream.next('updateReferralConfig', answer(500));
    expect((await ask('updateReferralConfig')).json).toMatchObject({ outcome: 'unknown' });
    for (const version of [1, 2]) {
      for (const _ of [1, 2]) expect(seen(await ask('getReferralConfig'))).toEqual([200, UNKEPT, version]);
      upstream.change(me); // it is carried out between the two
      await pass(40);
    }
    expect(seen(await ask('getReferralConfig'))).toEqual([200, MISS, 3]); // its request's time is over, too
    expect(seen(await ask('getReferralConfig'))).toEqual([200, isHit, 3]);
  },
  { time: true },
);

const NO_STORE_ALL = { ...NO_STORE, 'X-Request-Id': 'the-same-for-all' };

test.each<[OperationId, OperationId, Record<string, string>]>([
  ['createApiKey', 'getApiKey', {}],
  ['purchasePlan', 'getPendingPayment', {}],
  ['startIdVerification', 'getVerificationFlow', {}],
  ['updateReferralConfig', 'getReferralConfig', NO_STORE_ALL],
])(`${says('no later read of that account')}: after %s %s, not kept, joins no call from before it`, async (...row) => {
  const [write, read, headers] = row;
  const { ask, see, begin, pass } = openCache();
  const slow = await begin(read, { headers });
  await ask(write, { headers });
  const after = see(read, { headers });
  await pass(0);
  expect(await slow.end()).toMatchObject([200, expect.any(String), 1]);
  expect(await after).toMatchObject([200, expect.any(String), 2]);
});
