import { describe, expect, test } from 'vitest';
import { configOf } from '../support/gateway.ts';
import { accountIds, cachedIds, policyOf, readIds, rowOf, touchedBy, writeIds } from '../support/table.ts';
import { allOperations, type OperationId } from '../../src/upstream/operations/index.ts';

/**
 * What the documents promise of the operations that they name. All other tests take an operation's part from the table,
 * so one that is added is covered by them without being named here.
 */

/** The list of `upstream-api.md`, in its order. */
const DOCUMENTED = [
  'GET /api/v2/apikey/{id}/',
  'POST /api/v2/apikey/',
  'GET /api/v2/payment/method/',
  'GET /api/v2/payment/method/{id}/',
  'DELETE /api/v2/payment/method/',
  'GET /api/v2/payment/transaction/',
  'GET /api/v2/payment/transaction/{id}/',
  'GET /api/v2/payment/pending/',
  'GET /api/v2/payment/pending/{id}/',
  'POST /api/v2/subscription/checkout/purchase/',
  'GET /api/v2/subscription/',
  'GET /api/v2/referral/config/',
  'PATCH /api/v2/referral/config/',
  'GET /api/v2/referral/credit/',
  'GET /api/v2/referral/credit/{id}/',
  'GET /api/v2/referral/earnout/',
  'GET /api/v2/referral/earnout/{id}/',
  'GET /api/v2/referral/channel/',
  'GET /api/v2/subuser/{id}/',
  'POST /api/v2/subuser/{id}/refresh/',
  'GET /api/v2/proxy/ipauthorization/{id}/',
  'DELETE /api/v2/proxy/ipauthorization/{id}/',
  'POST /api/v2/proxy/list/refresh/',
  'GET /api/v2/proxy/activity/',
  'GET /api/v2/notification/',
  'POST /api/v2/idverification/start/',
  'GET /api/v2/verification/flow/{id}/',
  'POST /api/v2/register/social/',
  'POST /api/v2/login/social/',
];

type Seconds = readonly [fresh: number, stale: number, onError: number];

const NEVER: Seconds = [0, 0, 0];

/** `contract.md` section 5. */
const CACHED: Readonly<Partial<Record<OperationId, Seconds>>> = {
  getSubscription: [30, 300, 3600],
  getReferralConfig: [30, 300, 3600],
  listReferralChannels: [30, 300, 3600],
  listPaymentMethods: [30, 300, 3600],
  getPaymentMethod: [30, 300, 3600],
  listNotifications: [10, 60, 3600],
  listTransactions: [30, 60, 3600],
  getTransaction: [30, 60, 3600],
  listReferralCredits: [30, 60, 3600],
  getReferralCredit: [30, 60, 3600],
  listEarnOuts: [30, 60, 3600],
  getEarnOut: [30, 60, 3600],
  listPendingPayments: [30, 60, 3600],
  getSubuser: [10, 30, 600],
  getIpAuthorization: [10, 30, 600],
  listProxyActivity: [10, 30, 600],
  getPendingPayment: NEVER,
  getApiKey: NEVER,
  getVerificationFlow: NEVER,
};

/** What each write makes worthless, as `contract.md` section 5 has it. */
const TOUCHED: Readonly<Partial<Record<OperationId, readonly OperationId[]>>> = {
  updateReferralConfig: ['getReferralConfig'],
  deletePaymentMethod: ['listPaymentMethods', 'getPaymentMethod', 'getSubscription'],
  refreshSubuser: ['getSubuser'],
  refreshProxyList: ['getSubuser'],
  deleteIpAuthorization: ['getIpAuthorization'],
  purchasePlan: cachedIds,
  startIdVerification: [],
  createApiKey: [],
  registerSocial: [],
  loginSocial: [],
};

// The keys of a literal.
const named = <T>(literal: Readonly<Partial<Record<OperationId, T>>>) => Object.entries(literal) as [OperationId, T][];

const endpoints = allOperations.map(({ method, path }) => `${method} ${path}`);

test.each(DOCUMENTED)('%s has one row', (endpoint) => {
  expect(endpoints.filter((one) => one === endpoint)).toEqual([endpoint]);
});

test('no endpoint has two rows', () => {
  expect(endpoints.toSorted()).toEqual([...new Set(endpoints)].toSorted());
});

describe('the cache', () => {
  test.each(named(CACHED))('keeps %s for %j seconds', (id, [fresh, stale, onError]) => {
    expect(policyOf(id)).toEqual({ fresh, stale, onError });
    const configured = configOf({}).policyOf(rowOf(id));
    expect(configured).toEqual(fresh === 0 ? undefined : { fresh, stale, onError });
  });

  test.each(writeIds)('keeps nothing of %s', (id) => {
    expect([rowOf(id).cache, configOf({}).policyOf(rowOf(id))]).toEqual([undefined, undefined]);
  });
});

test.each(named(TOUCHED))('%s touches %j', (id, touched) => {
  expect(touchedBy(id).toSorted()).toEqual(touched.toSorted());
});

test('every documented endpoint is in one of these lists', () => {
  const listed = [...named(CACHED), ...named(TOUCHED)].map(([id]) => id);
  const documented = allOperations.filter(({ method, path }) => DOCUMENTED.includes(`${method} ${path}`));
  expect(listed.toSorted()).toEqual(documented.map(({ id }) => id).toSorted());
  expect([...readIds, ...writeIds].toSorted()).toEqual(allOperations.map(({ id }) => id).toSorted());
  expect(accountIds.filter((id) => rowOf(id).exclusive)).toContain('purchasePlan');
});
