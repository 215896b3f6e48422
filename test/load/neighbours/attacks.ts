import { SECRET } from '../support/gateways.ts';
import type { Wanted } from '../support/client.ts';

/** Somebody who does his worst; `place` counts his requests. */
export interface Attack {
  readonly name: string;
  readonly who: (place: number) => Who;
  readonly what: (place: number) => Pick<Wanted, 'method' | 'path' | 'body' | 'headers'>;
  /** Requests a second that it never goes beyond. */
  readonly most?: number;
  /** Each write has a key of its own. */
  readonly isKeyed?: boolean;
  /** Variables of the gateway. */
  readonly env?: Readonly<Record<string, string>>;
}

interface Who {
  readonly account?: string;
  readonly address: string;
}

export const ATTACKERS = ['attacker-0', 'attacker-1', 'attacker-2', 'attacker-3'];
export const ONE_ADDRESS = '203.0.113.7';

const MANY_ADDRESSES = 100_000;
const MADE_UP = 100_000;
/** A request body has 64 KB at most. */
const BAD_FIELDS = 6_400;
const IN_A_BATCH = 20;
const LONG = 'q'.repeat(8_000);
const LONG_IN_A_BATCH = 'q'.repeat(3_000);

const READS = '/api/v2/payment/transaction/';

const accounts = (many: number) => (place: number) =>
  ({ account: ATTACKERS[place % many], address: ONE_ADDRESS }) as Who;

const oneAddress = () => ONE_ADDRESS;

const manyAddresses = (place: number) => {
  const host = place % MANY_ADDRESSES;
  return `10.${host >> 16}.${(host >> 8) & 255}.${host & 255}`;
};

/** Each credential once or twice. */
const madeUp = (addressOf: (place: number) => string) => (place: number) => ({
  account: `made-up-${Math.floor((place * 2) / 3) % MADE_UP}`,
  address: addressOf(place),
});

const nobody = (addressOf: (place: number) => string) => (place: number) => ({ address: addressOf(place) });

/** No two are equal. */
const read = (query: string) => (place: number) => ({ path: `${READS}?page=${place + 1}&${query}` });

const failingLogin = (place: number) => ({
  method: 'POST' as const,
  path: '/api/v2/login/social/?fault=500',
  body: { provider: 'google', code: `code-${place}`, redirect_uri: 'https://app.example/' },
});

const keyedWrite = (query: string) => (place: number) => ({
  method: 'POST' as const,
  path: `/api/v2/apikey/?${query}`,
  body: { label: `label ${place}` },
});

const batchOf = (pathOf: (item: number) => string) => ({
  method: 'POST' as const,
  path: '/bff/v1/batch',
  body: { requests: Array.from({ length: IN_A_BATCH }, (_, i) => ({ id: `${i}`, path: pathOf(i) })) },
});

const batch = (query: string) => (place: number) => batchOf((item) => read(query)(place * IN_A_BATCH + item).path);

/** Of items that are all equal. */
const batchOfOne = (query: string) => () => batchOf(() => read(query)(0).path);

const SPACES = `a=1${' '.repeat(15_000)}b`;
const SESSIONS = { SESSIONS: 'true', SECRETS: SECRET };

const badFields = Object.fromEntries(Array.from({ length: BAD_FIELDS }, (_, i) => [`b${i}`, 1]));

export const attacks: readonly Attack[] = [
  { name: 'one account, reads that fail, eight a second', who: accounts(1), what: read('fault=500'), most: 8 },
  { name: 'one account, reads that fail', who: accounts(1), what: read('fault=500') },
  { name: 'one account, reads that hang', who: accounts(1), what: read('fault=hang') },
  { name: 'four accounts, reads that hang', who: accounts(4), what: read('fault=hang') },
  { name: 'one account, pages of 2 MB', who: accounts(1), what: read('size=2000000') },
  { name: 'two accounts, keyed writes of 64 KB', who: accounts(2), what: keyedWrite('size=64000'), isKeyed: true },
  { name: 'one address, keyed logins that fail', who: nobody(oneAddress), what: failingLogin, isKeyed: true },
  { name: 'many addresses, keyed logins that fail', who: nobody(manyAddresses), what: failingLogin, isKeyed: true },
  { name: 'one address, made-up credentials', who: madeUp(oneAddress), what: read('fault=401') },
  { name: 'many addresses, made-up credentials', who: madeUp(manyAddresses), what: read('fault=401') },
  { name: 'one address, made-up credentials, slow', who: madeUp(oneAddress), what: read('fault=401&delay=4000') },
  { name: 'many addresses, made-up credentials, slow', who: madeUp(manyAddresses), what: read('fault=401&delay=4000') },
  { name: 'many addresses, made-up credentials, 429', who: madeUp(manyAddresses), what: read('fault=429&retry=600') },
  { name: 'one address, made-up credentials, batches', who: madeUp(oneAddress), what: batch('fault=401') },
  { name: 'one account, batches of long queries', who: accounts(1), what: batch(`long=${LONG_IN_A_BATCH}`) },
  { name: 'one account, batches of one copy of 4 MB', who: accounts(1), what: batchOfOne('size=4000000') },
  { name: 'one account, queries of 8 KB', who: accounts(1), what: read(`long=${LONG}`) },
  { name: 'one account, 404s with queries of 8 KB', who: accounts(1), what: read(`fault=404&long=${LONG}`) },
  {
    name: 'one address, made-up credentials, 6,400 bad fields',
    who: madeUp(oneAddress),
    what: () => ({ method: 'PATCH', path: '/api/v2/referral/config/', body: badFields }),
  },
  {
    name: 'one address, cookies of 15,000 spaces',
    who: nobody(oneAddress),
    what: () => ({ path: '/api/v2/subscription/', headers: { Cookie: SPACES } }),
    env: SESSIONS,
  },
];
