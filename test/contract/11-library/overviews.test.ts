import { expect, test } from 'vitest';
import { from, fromPath, overview, type Overview } from '../../../src/index.ts';
import { tableOf } from '../../../src/upstream/table.ts';
import { operations as rows } from '../../support/account-api.ts';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { answer } from '../../support/upstream.ts';
import { LINES, listOf } from '../06-overviews/helpers.ts';

const open = (...overviews: readonly Overview[]) => openGateway({}, { overviews });
const MINE = '/bff/v1/mine';
const PAYMENT = '/bff/v1/payment-overview';
const list = { read: rows.listTransactions };
const card = { read: rows.getPaymentMethod };
const config = { read: rows.getReferralConfig };
const ofPayment = overview(`${PAYMENT}/:payment`, {
  payment: { read: rows.getPendingPayment, params: { id: fromPath('payment') }, required: true },
  card: { ...card, params: { id: from('payment', 'payment_method') } },
  similar: { ...list, query: { like: fromPath('payment'), page_size: 5, old: true } },
});

test('the parameter of a path is an id, and a part of a query; another section names the id of the next', async () => {
  const { call, upstream, lines } = open(ofPayment);
  for (const id of ['9223372036854775807', '1', '10']) {
    upstream.next('getPendingPayment', answer(200, `{"id":${id},"payment_method":8}`));
    const { text, headers } = await call(`${PAYMENT}/${id}/`);
    expect(text).toContain(`{"data":{"payment":{"id":${id},"payment_method":8},"card":{`);
    expect(headers.get('cache-control')).toBe('no-store'); // as that of the payment
    const targets = [`transaction/?like=${id}&page_size=5&old=true`, `pending/${id}/`].map(
      (one) => `/api/v2/payment/${one}`,
    );
    expect(upstream.calls.map(({ target }) => target)).toEqual(expect.arrayContaining(targets));
  }
  expect(upstream.calls).toHaveLength(3 + 3 + 1);
  expect(lines.at(-1)).toMatchObject({ route: `${PAYMENT}/{payment}`, operation: 'getPaymentOverview' });
});

test('what no id may be is an unknown path, a slug is one where all take it, and a bad query is a failed section', async () => {
  const ip = { read: rows.getIpAuthorization, params: { id: fromPath('id') } };
  const { call, upstream } = open(
    ofPayment,
    overview('/bff/v1/ip/:id', { ip }),
    overview('/bff/v1/both/:id', { ip, card: { ...card, params: { id: fromPath('id') } } }),
    overview('/bff/v1/sized/:size', { list: { ...list, query: { page_size: fromPath('size') } }, config }),
  );
  for (const id of ['x', '-1', '1.5', '12345678901234567890', '7%20', '%37', '7/8', '', 'batch', '..', '7;a=1'])
    expect((await call(`${PAYMENT}/${id}`)).code, id).toBe('unknown_endpoint');
  for (const path of ['ip/a.b', 'both/auth_91-a']) expect((await call(`/bff/v1/${path}`)).status).toBe(404);
  expect(upstream.calls).toEqual([]);
  expect((await call('/bff/v1/ip/auth_91-a')).status).toBe(200);
  expect((await call('/bff/v1/sized/0')).json.errors).toMatchObject([{ section: 'list', code: 'validation_failed' }]);
});

interface Inputs {
  readonly list: { readonly count: number; readonly results: object[] };
  readonly config: object | null;
}

/** As where nobody has checked the types. */
const computing = (compute: (inputs: Inputs) => unknown) =>
  overview(MINE, { list: { ...list, required: true }, config }, compute as () => object);

test(
  says(
    "`overview` takes a function over its sections; what it gives is the section `computed`; numbers in it are JavaScript's.",
  ),
  async () => {
    const mine = computing((inputs) => ({ items: inputs.list.results.splice(0), config: inputs.config !== null }));
    const { call, stream, upstream, pass } = open(mine);
    upstream.next('listTransactions', listOf('{"id":9007199254740993,"amount":25.0}', '{"id":2,"amount":1e2}'));
    const computed = '{"items":[{"id":9007199254740992,"amount":25},{"id":2,"amount":100}],"config":true}';
    const first = await call(MINE);
    expect(first.text).toContain(`,"computed":${computed}},"errors":[]`);
    await pass(3);
    const again = await call(`${MINE}?fields[list]=id`); // its inputs are whole, and its own to change
    expect(again.text).toContain(computed);
    expect(again.json.meta.sections.computed).toEqual({ state: 'fresh', age: 3 });
    expect((await call(MINE, { headers: { 'If-None-Match': first.headers.get('etag')! } })).status).toBe(304);
    const lines = await (await stream(MINE, { headers: LINES })).rest();
    expect(lines).toContain(`{"section":"computed","state":"fresh","data":${computed}}`);
    expect((await call(`${MINE}?fields[computed]=id`)).status).toBe(400);
  },
);

test('what is computed is as old as its inputs, of which one may have failed, or not be asked for, but no required one', async () => {
  const { call, upstream, pass } = open(computing((inputs) => [inputs.list.count, inputs.config !== null]));
  const read = (query = '') => call(MINE + query);
  expect((await read('?sections=computed')).json.data).toEqual({ computed: [1, false] });
  await pass(40);
  upstream.next('getReferralConfig', answer(404));
  const { data, meta } = (await read()).json;
  expect([data.computed, meta.sections.computed]).toEqual([[1, false], { state: 'stale', age: 40 }]);
  await pass(5_000);
  upstream.next('listTransactions', answer(404));
  const skipped = (await read('?sections=computed')).json;
  expect(skipped).toMatchObject({ data: { computed: null }, errors: [{ section: 'computed', status: 404 }] });
  expect(skipped.meta.sections.computed).toEqual({ state: 'skipped' });
});

test.each<readonly [what: string, compute: () => unknown]>([
  ['throws', () => JSON.parse('hunter2') as unknown],
  ['gives nothing', () => undefined],
  ['gives a promise that fails', () => Promise.reject(new Error('hunter2'))],
  ['gives a BigInt', () => ({ a: 1n })],
])('a function that %s fails that section alone, once in the log, without a message', async (_, compute) => {
  const { call, lines } = open(computing(compute));
  const { status, json, text, headers } = await call(MINE);
  expect([status, headers.get('cache-control'), json.data.computed]).toEqual([200, 'no-store', null]);
  expect(json.errors).toMatchObject([{ section: 'computed', code: 'internal_error', status: 500, retryable: false }]);
  expect(lines.filter(({ msg }) => msg === 'the section `computed` has failed')).toHaveLength(1);
  expect(JSON.stringify([text, lines])).not.toContain('hunter2');
  expect((await call(MINE, { headers: { Prefer: 'handling=strict' } })).status).toBe(500);
});

const sections = (...all: readonly object[]) => all.map((one) => [MINE, one] as const);
const wrong: Readonly<Record<string, readonly (readonly [path: string, sections?: object])[]>> = {
  'is not at a path such as': ['/api/a', '/bff/v1/a/', '/bff/v1/../a', '/bff/v1/:a'].map((path) => [path]),
  'is at a path that Portico has itself': ['batch', 'outcome', 'session/mine'].map((path) => [`/bff/v1/${path}`]),
  'has no sections': sections({}),
  'has a parameter `id` in its path that no section takes': [[`${MINE}/:id`]],
  'wants a parameter `id`, which is not in its path': sections({ card: { ...card, params: { id: fromPath('id') } } }),
  'has the name of what': sections({ computed: list }),
  'which is no GET': sections({ a: { read: rows.purchasePlan } }),
  'gives `getPaymentMethod` no `id`': sections({ card }),
  'a `id` that is not of its form': sections({ card: { ...card, params: { id: 'x' } } }),
  'is no section before it': sections(
    { card: { ...card, params: { id: from('list', 'x') } }, list },
    { card: { ...card, params: { id: from('constructor', 'name') } } },
  ),
  'for a `page_size` that it does not take': sections({ a: { ...list, query: { page_size: 'many' } } }),
};

test.each(Object.entries(wrong))('an overview is refused in words: %s', (words, all) => {
  const make = overview as (path: string, sections: object) => Overview;
  for (const [path, of = { list }] of all) expect(() => make(path, of), path).toThrow(words);
});

test('a gateway refuses in words what does not fit its rows, or another overview', () => {
  const one = overview(MINE, { list });
  expect(() => open(one, one)).toThrow('is at the path of another overview');
  expect(() => open(one, overview('/bff/v1/Mine', { list }))).toThrow('has the id `getMine`');
  const { listTransactions: _without, ...others } = rows;
  expect(() => openGateway({}, { table: tableOf(others), overviews: [one] })).toThrow(
    'not among the rows of the gateway',
  );
  const inList = from('payment', 'payment_method', rows.listPaymentMethods);
  const found = overview(MINE, {
    payment: { read: rows.getPendingPayment, params: { id: '7' } },
    card: { ...card, params: { id: inList } },
  });
  const listPaymentMethods = { ...rows.listPaymentMethods, group: 'others' }; // so that no write of a card changes it
  const table = tableOf({ ...rows, listPaymentMethods });
  expect(() => openGateway({}, { table, overviews: [found] })).toThrow('does not invalidate with its item');
});
