import type { Wanted } from '../../../../bench/harness/client.ts';

/** One kind of request in the soak. */
type Kind = readonly [
  name: string,
  /** How many there are for each read that is new to the cache. */
  share: number,
  /** 0: the client left. */
  expected: readonly number[],
  /** `place` counts the requests of this kind, `newest` is the read that is new to the cache at that time. */
  wanted: (place: number, newest: number) => Wanted,
];

const ACCOUNTS_AT_ONCE = 1_000;
const FILTERS = 20;
const TRANSACTIONS = '/api/v2/payment/transaction/';
const API_KEYS = '/api/v2/apikey/';
const PURCHASE = '/api/v2/subscription/checkout/purchase/';

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

const known = (newest: number) => coldRead(Math.max(0, newest - 50 - Math.floor(Math.random() * 500)));

const overview = (place: number, account: string): Wanted => ({
  path: `/bff/v1/${['account', 'billing', 'referral'][place % 3]}-overview`,
  account,
});

/** Records of purchases stay for their day: one in a hundred is one, so that a run does not measure how they pile up. */
const PURCHASES = 100;

/** From here on as many as there is room for, and more: then what has a key is refused, but replayed where it has a record. */
const RECORDED = 3e6;

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

const faulty = (fault: string, share: number, expected: number): Kind => [
  `upstream: ${fault}`,
  share,
  [expected],
  (place, newest) => ({ path: `${TRANSACTIONS}?fault=${fault}&page=${place + 1}`, account: accountOf(newest) }),
];

/** The same account for a while, so that some join a call that others leave. */
const leavesRead = (place: number, newest: number): Wanted => ({
  path: `${TRANSACTIONS}?fault=slow&page=${1 + (place >> 1)}`,
  account: accountOf(newest - (newest % 100)),
  leavesAfterMs: 20 + (place % 100),
});

const write = (method: 'POST' | 'PATCH' | 'DELETE', path: string, read: number, body?: object): Wanted => ({
  method,
  path,
  account: accountOf(read),
  ...(body && { body }),
});

const batch = { requests: Array.from({ length: 5 }, (_, place) => ({ id: `${place}`, path: pathOf(place) })) };

/** All that goes on beside the reads that are new to the cache. */
export const kinds: readonly Kind[] = [
  ['read again', 0.2, [200], (_, newest) => known(newest)],
  ['no-cache', 0.01, [200], (_, newest) => ({ ...known(newest), headers: { 'Cache-Control': 'no-cache' } })],
  ['no-store', 0.01, [200], (_, newest) => ({ ...known(newest), headers: { 'Cache-Control': 'no-store' } })],
  ['POST with a key', 0.04, [200, 503], keyedPost],
  ['POST replayed', 0.01, [200, 503], (place) => keyedPost(RECORDED + (place % 6_000))],
  [
    'key reused',
    0.004,
    [422, 503],
    (place) => ({ ...keyedPost(RECORDED + (place % 6_000)), body: { label: 'another', term: 'yearly' } }),
  ],
  [
    'purchase, twice at once',
    0.008,
    [200, 409],
    (place) => ({ method: 'POST', path: PURCHASE, account: `two-${place >> 1}`, body: { term: 'monthly' } }),
  ],
  ['POST of unknown outcome', 0.002, [502], (_, newest) => write('POST', `${API_KEYS}?fault=500`, newest, {})],
  ['client leaves a read', 0.01, [0], leavesRead],
  [
    'client leaves a write',
    0.004,
    [0],
    (place, newest) => ({ ...write('POST', `${API_KEYS}?fault=slow`, newest, {}), leavesAfterMs: 20 + (place % 100) }),
  ],
  [
    'client leaves an overview',
    0.004,
    [0, 200],
    (place) => ({ ...overview(place, `left-${place}`), leavesAfterMs: 1 + (place % 8) }),
  ],
  faulty('503', 0.006, 503),
  faulty('500', 0.004, 502),
  faulty('reset', 0.003, 502),
  faulty('malformed', 0.003, 502),
  faulty('hang', 0.001, 504),
  faulty('404', 0.006, 404),
  ['upstream: 429', 0.006, [429], (place) => held(1e6 + place)],
  ['invalid credential', 0.02, [401], (place) => invalid(1e6 + place)],
  ['no credential', 0.01, [401], () => ({ path: TRANSACTIONS })],
  ['unknown path', 0.02, [404], (n, newest) => ({ path: `/api/v3/nothing-${n}`, account: accountOf(newest) })],
  ['overview', 0.02, [200], (place, newest) => overview(place, accountOf(newest))],
  [
    'overview as NDJSON',
    0.004,
    [200],
    (place, newest) => ({ ...overview(place, accountOf(newest)), headers: { Accept: 'application/x-ndjson' } }),
  ],
  ['batch', 0.005, [200], (_, newest) => write('POST', '/bff/v1/batch', newest, batch)],
  ['PATCH', 0.006, [200], (_, newest) => write('PATCH', '/api/v2/referral/config/', newest, { mode: 'credits' })],
  ['DELETE', 0.006, [204], (n, newest) => write('DELETE', `/api/v2/proxy/ipauthorization/auth-${n}/`, newest)],
  ['sub-user refreshed', 0.004, [200], (n, newest) => write('POST', `/api/v2/subuser/${n + 1}/refresh/`, newest)],
  ['greedy account', 0.03, [200, 429], () => ({ path: '/api/v2/subscription/', account: 'greedy' })],
];

const some = (many: number, wanted: (place: number) => Wanted) =>
  Array.from({ length: many }, (_, place) => wanted(place));

/** What fills everything that is bounded by a number: limit windows, holds, accounts, records. In any order. */
export const filling = (): Wanted[] =>
  [
    ...some(38_000, invalid),
    ...some(10_500, held),
    ...some(22_500, (place) => ({ path: pathOf(Math.floor(place / 4_500)), account: `early-${place % 4_500}` })),
    ...some(6_000, (place) => keyedPost(RECORDED + place)),
    ...some(1_000, unknownPost),
  ]
    .map((wanted) => ({ wanted, order: Math.random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ wanted }) => wanted);
