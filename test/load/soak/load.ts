import type { Wanted } from '../support/client.ts';

/** One kind of request in the soak. */
export interface Kind {
  readonly name: string;
  /** How many there are for each read that is new to the cache. */
  readonly share: number;
  /** 0: the client left. */
  readonly expected: readonly number[];
  /** `place` counts the requests of this kind, `newest` is the read that is new to the cache at that time. */
  readonly wanted: (place: number, newest: number) => Wanted;
}

const ACCOUNTS_AT_ONCE = 1_000;
const FILTERS = 20;
const TRANSACTIONS = '/api/v2/payment/transaction/';
const API_KEYS = '/api/v2/apikey/';
const PURCHASE = '/api/v2/subscription/checkout/purchase/';
const OVERVIEWS = ['account', 'billing', 'referral'].map((name) => `/bff/v1/${name}-overview`);

/** A thousand accounts read twenty things each, then come the next thousand. */
const accountOf = (read: number) =>
  `account-${Math.floor(read / (ACCOUNTS_AT_ONCE * FILTERS)) * ACCOUNTS_AT_ONCE + (read % ACCOUNTS_AT_ONCE)}`;

const pathOf = (filter: number) =>
  [
    `${TRANSACTIONS}?page=${filter + 1}`,
    `/api/v2/proxy/activity/?search=s${filter}`,
    `/api/v2/subuser/${filter + 1}/`,
    `/api/v2/subscription/?plan_id=${filter}`,
  ][filter % 4] ?? '';

/** A read that is new to the cache, whatever number it has. */
export const coldRead = (read: number): Wanted => ({
  path: pathOf(Math.floor(read / ACCOUNTS_AT_ONCE) % FILTERS),
  account: accountOf(read),
});

const recent = (newest: number, among: number) => Math.max(0, newest - 50 - Math.floor(Math.random() * among));

/** Records of purchases stay for their day: one in a hundred is one, so that a run does not measure how they pile up. */
const PURCHASES = 100;

const keyedPost = (place: number): Wanted => ({
  method: 'POST',
  path: place % PURCHASES === 1 ? PURCHASE : API_KEYS,
  account: `buyer-${place % 5_000}`,
  headers: { 'Idempotency-Key': `key-${place}` },
  body: { label: `label ${place}`, term: 'monthly' },
});

const unknownPost = (place: number): Wanted => ({
  ...keyedPost(place),
  path: `${API_KEYS}?fault=500`,
  account: `u-${place}`,
});

const invalid = (place: number): Wanted => ({ path: `${TRANSACTIONS}?fault=401`, account: `invalid-${place}` });

const held = (place: number): Wanted => ({ path: `${TRANSACTIONS}?fault=429`, account: `held-${place}` });

const faulty = (name: string, fault: string, share: number, expected: number): Kind => ({
  name,
  share,
  expected: [expected],
  wanted: (place, newest) => ({ path: `${TRANSACTIONS}?fault=${fault}&page=${place + 1}`, account: accountOf(newest) }),
});

const batchOf = (newest: number) => ({
  requests: Array.from({ length: 5 }, (_, place) => ({ id: `${place}`, path: pathOf(place % FILTERS), newest })).map(
    ({ id, path }) => ({ id, path }),
  ),
});

/** All that goes on beside the reads that are new to the cache. */
export const kinds: readonly Kind[] = [
  { name: 'read again', share: 0.2, expected: [200], wanted: (_, newest) => coldRead(recent(newest, 500)) },
  {
    name: 'no-cache',
    share: 0.01,
    expected: [200],
    wanted: (_, newest) => ({ ...coldRead(recent(newest, 500)), headers: { 'Cache-Control': 'no-cache' } }),
  },
  {
    name: 'no-store',
    share: 0.01,
    expected: [200],
    wanted: (_, newest) => ({ ...coldRead(recent(newest, 500)), headers: { 'Cache-Control': 'no-store' } }),
  },
  { name: 'POST with a key', share: 0.04, expected: [200], wanted: keyedPost },
  { name: 'POST replayed', share: 0.01, expected: [200], wanted: (place) => keyedPost(Math.max(0, 4 * place - 100)) },
  {
    name: 'key reused',
    share: 0.004,
    expected: [422],
    wanted: (place) => ({ ...keyedPost(Math.max(0, 10 * place - 100)), body: { label: 'another', term: 'yearly' } }),
  },
  {
    name: 'purchase, twice at once',
    share: 0.008,
    expected: [200, 409],
    wanted: (place) => ({ method: 'POST', path: PURCHASE, account: `two-${place >> 1}`, body: { term: 'monthly' } }),
  },
  {
    name: 'POST of unknown outcome, with a key',
    share: 0.0002,
    expected: [502],
    wanted: (place) => unknownPost(1e6 + place),
  },
  {
    name: 'POST of unknown outcome',
    share: 0.002,
    expected: [502],
    wanted: (_, newest) => ({ method: 'POST', path: `${API_KEYS}?fault=500`, account: accountOf(newest), body: {} }),
  },
  {
    name: 'client leaves a read',
    share: 0.01,
    expected: [0],
    wanted: (place, newest) => ({
      path: `${TRANSACTIONS}?fault=slow&page=${1 + (place >> 1)}`,
      account: accountOf(newest - (newest % 100)),
      leavesAfterMs: 20 + (place % 100),
    }),
  },
  {
    name: 'client leaves a write',
    share: 0.004,
    expected: [0],
    wanted: (place) => ({
      ...keyedPost(2e6 + place),
      path: `${API_KEYS}?fault=slow`,
      leavesAfterMs: 20 + (place % 100),
    }),
  },
  {
    name: 'client leaves an overview',
    share: 0.004,
    expected: [0, 200],
    wanted: (place) => ({ path: `${OVERVIEWS[place % 3]}`, account: `left-${place}`, leavesAfterMs: 1 + (place % 8) }),
  },
  faulty('upstream 503', '503', 0.006, 503),
  faulty('upstream 500', '500', 0.004, 502),
  faulty('upstream resets', 'reset', 0.003, 502),
  faulty('upstream sends no JSON', 'malformed', 0.003, 502),
  faulty('upstream hangs', 'hang', 0.001, 504),
  faulty('upstream 404', '404', 0.006, 404),
  { name: 'upstream 429', share: 0.006, expected: [429], wanted: (place) => held(1e6 + place) },
  { name: 'invalid credential', share: 0.02, expected: [401], wanted: (place) => invalid(1e6 + place) },
  { name: 'no credential', share: 0.01, expected: [401], wanted: () => ({ path: TRANSACTIONS }) },
  {
    name: 'unknown path',
    share: 0.02,
    expected: [404],
    wanted: (place, newest) => ({ path: `/api/v3/nothing-${place}`, account: accountOf(newest) }),
  },
  {
    name: 'overview',
    share: 0.02,
    expected: [200],
    wanted: (place, newest) => ({ path: `${OVERVIEWS[place % 3]}`, account: accountOf(newest) }),
  },
  {
    name: 'overview as NDJSON',
    share: 0.004,
    expected: [200],
    wanted: (place, newest) => ({
      path: `${OVERVIEWS[place % 3]}`,
      account: accountOf(newest),
      headers: { Accept: 'application/x-ndjson' },
    }),
  },
  {
    name: 'batch',
    share: 0.005,
    expected: [200],
    wanted: (_, newest) => ({
      method: 'POST',
      path: '/bff/v1/batch',
      account: accountOf(newest),
      body: batchOf(newest),
    }),
  },
  {
    name: 'PATCH',
    share: 0.006,
    expected: [200],
    wanted: (_, newest) => ({
      method: 'PATCH',
      path: '/api/v2/referral/config/',
      account: accountOf(newest),
      body: { mode: 'credits' },
    }),
  },
  {
    name: 'DELETE',
    share: 0.006,
    expected: [204],
    wanted: (place, newest) => ({
      method: 'DELETE',
      path: `/api/v2/proxy/ipauthorization/auth-${place}/`,
      account: accountOf(newest),
    }),
  },
  {
    name: 'sub-user refreshed',
    share: 0.004,
    expected: [200],
    wanted: (place, newest) => ({
      method: 'POST',
      path: `/api/v2/subuser/${place + 1}/refresh/`,
      account: accountOf(newest),
    }),
  },
  {
    name: 'greedy account',
    share: 0.03,
    expected: [200, 429],
    wanted: () => ({ path: '/api/v2/subscription/', account: 'greedy' }),
  },
];

const early = (place: number): Wanted => ({
  path: pathOf(Math.floor(place / 4_500)),
  account: `early-${place % 4_500}`,
});

/** What fills everything that is bounded by a number: limit windows, holds, accounts, records. In any order. */
export function filling(): Wanted[] {
  return [
    ...some(38_000, invalid),
    ...some(10_500, held),
    ...some(22_500, early),
    ...some(6_000, (place) => keyedPost(3e6 + place)),
    ...some(1_000, unknownPost),
  ]
    .map((wanted) => ({ wanted, order: Math.random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ wanted }) => wanted);
}

const some = (many: number, wanted: (place: number) => Wanted) =>
  Array.from({ length: many }, (_, place) => wanted(place));
