import { describe, expect, test } from 'vitest';
import { from, type Section } from '../../src/gateway/sections.ts';
import { type OperationId, allOperations, allOverviews, operations } from '../support/account-api.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { configOf } from '../support/gateway.ts';
import { cachedIds, partedBy, policyOf, rowOf, invalidatedReads, writeIds } from '../support/table.ts';

/**
 * What the documents promise of the operations and overviews that they name: the one place where the tables are held
 * against them. All other tests believe the tables, so that what is added there is covered without being named.
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

/** What each write invalidates, as `contract.md` section 5 has it. */
const INVALIDATED: Readonly<Partial<Record<OperationId, readonly OperationId[]>>> = {
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

test.each(named(INVALIDATED))('%s invalidates %j', (id, reads) => {
  expect(invalidatedReads(id).toSorted()).toEqual(reads.toSorted());
});

const documented: readonly (Operation & { readonly id: OperationId })[] = allOperations.filter(({ method, path }) =>
  DOCUMENTED.includes(`${method} ${path}`),
);

test('every documented endpoint is in one of these lists', () => {
  const listed = [...named(CACHED), ...named(INVALIDATED)].map(([id]) => id);
  expect(listed.toSorted()).toEqual(documented.map(({ id }) => id).toSorted());
});

/** What else the documents say of single operations; of all others they say the opposite. */
const SAID: Readonly<Record<string, readonly [(row: Operation) => boolean, readonly OperationId[]]>> = {
  'take no credential': [({ credential }) => credential === 'none', ['registerSocial', 'loginSocial']],
  'take letters for an id': [({ idForm }) => idForm === 'slug', ['getIpAuthorization', 'deleteIpAuthorization']],
  'are refused beside an equal one': [({ exclusive }) => exclusive === true, ['purchasePlan']],
  'take a body or none': [({ body }) => body?.optional === true, ['startIdVerification']],
  'take a body': [
    ({ body }) => body !== undefined && body.optional !== true,
    ['createApiKey', 'purchasePlan', 'updateReferralConfig', 'registerSocial', 'loginSocial'],
  ],
  'answer without a body': [
    ({ answer }) => answer === null,
    ['deletePaymentMethod', 'deleteIpAuthorization', 'refreshProxyList'],
  ],
  'answer with pages': [
    ({ paged }) => paged === true,
    [
      'listPaymentMethods',
      'listTransactions',
      'listPendingPayments',
      'listReferralCredits',
      'listEarnOuts',
      'listProxyActivity',
      'listNotifications',
    ],
  ],
};

test.each(Object.entries(SAID))('those that %s are the documented ones', (_, [isMeant, ids]) => {
  const found = documented.filter(isMeant).map(({ id }) => id);
  expect(found.toSorted()).toEqual(ids.toSorted());
});

/** Fields of bodies and answers that no log and no copy may hold. */
const SECRETS: Readonly<Partial<Record<OperationId, readonly string[]>>> = {
  getApiKey: ['key'],
  createApiKey: ['key'],
  purchasePlan: ['processor_client_secret', 'recaptcha'],
  startIdVerification: ['client_secret'],
  registerSocial: ['token', 'code'],
  loginSocial: ['token', 'code'],
};

test.each(documented.map((row) => [row.id, row] as const))('%s has the secrets that it should have', (id, row) => {
  expect(row.secrets).toEqual(SECRETS[id]);
});

/** Reads that are never cached, of which none joins a call from before the write. */
const PARTED: Readonly<Partial<Record<OperationId, readonly OperationId[]>>> = {
  createApiKey: ['getApiKey'],
  startIdVerification: ['getVerificationFlow'],
  purchasePlan: ['getApiKey', 'getVerificationFlow', 'getPendingPayment'],
};

test.each(documented.filter(({ method }) => method !== 'GET').map(({ id }) => id))(
  '%s parts the reads it should',
  (id) => {
    const parted = partedBy(id).filter((read) => documented.some((row) => row.id === read));
    expect(parted.toSorted()).toEqual((PARTED[id] ?? []).toSorted());
  },
);

const CARD: Section = {
  read: operations.getPaymentMethod,
  id: from('subscription', 'payment_method', operations.listPaymentMethods),
};
const read = (operation: Operation, more: Partial<Section> = {}) => ({ read: operation, ...more });
const SUBSCRIPTION = read(operations.getSubscription, { required: true });

/** `contract.md` section 6. */
const OVERVIEWS: readonly (readonly [path: string, sections: Readonly<Record<string, unknown>>])[] = [
  [
    '/bff/v1/account-overview',
    {
      subscription: SUBSCRIPTION,
      payment_method: CARD,
      notifications: read(operations.listNotifications, { query: { dismissed_at__isnull: 'True' } }),
      referral_config: read(operations.getReferralConfig),
    },
  ],
  [
    '/bff/v1/billing-overview',
    {
      subscription: SUBSCRIPTION,
      payment_method: CARD,
      transactions: read(operations.listTransactions),
      pending_payments: read(operations.listPendingPayments),
    },
  ],
  [
    '/bff/v1/referral-overview',
    {
      referral_config: read(operations.getReferralConfig, { required: true }),
      credits: read(operations.listReferralCredits),
      earn_outs: read(operations.listEarnOuts),
      channels: read(operations.listReferralChannels),
    },
  ],
];

test.each(OVERVIEWS)('%s has the sections that the contract names, in its order', (path, sections) => {
  const found = allOverviews.find((overview) => overview.path === path);
  expect(found?.sections).toEqual(sections);
  expect(Object.keys(found?.sections ?? {})).toEqual(Object.keys(sections));
});
