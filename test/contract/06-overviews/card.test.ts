import { expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { type Answer, openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer, type Reply } from '../../support/upstream.ts';
import { ACCOUNT, BILLING, cardText, listOf, SECTIONS, textOf, withCard } from './helpers.ts';

const CARD = '/api/v2/payment/method/1071/';

everywhere(
  says(
    'A cold overview takes one round trip of the upstream, not two, though the card depends on the subscription; four calls',
  ),
  async ({ call, upstream }) => {
    const held = Object.values(SECTIONS[ACCOUNT]!).map((id) => upstream.hold(id));
    const pending = call(ACCOUNT);
    await Promise.all(held.map((one) => one.call)); // all are under way before any is answered
    for (const one of held) one.release();
    const { text, json } = await pending;
    expect(text).toContain(`"payment_method":${cardText('1071')},`);
    expect([json.meta.complete, upstream.calls.length]).toEqual([true, 4]);
  },
);

everywhere(says('five where the card is not where it was expected.'), async ({ call, upstream }) => {
  upstream.next('listPaymentMethods', listOf(cardText('8')));
  const { text, json } = await call(BILLING);
  expect(text).toContain(`"payment_method":${textOf('getPaymentMethod')},`);
  expect([json.meta.complete, upstream.calls.length]).toEqual([true, 5]);
  expect(upstream.callsTo('getPaymentMethod')).toMatchObject([{ path: CARD }]);
});

const { ask, call, upstream, pass } = openGateway();
const read = async (token = secret(), query = '') => call(ACCOUNT + query, { token });
/** The card as it stands in the answer. */
const cardIn = ({ text }: Answer) => /"payment_method":(\{"(?:id|x_v).*?\}),"notifications":/.exec(text)?.[1];
const asked = () => upstream.calls.map(({ path }) => path);

test('the card is the one that the subscription names, to the digit', async () => {
  const decoy = '{"type":"Other","nested":{"id":1071},"text":"\\"id\\":1071","id":6}';
  upstream.next('listPaymentMethods', listOf(cardText('10710'), decoy, cardText('1071'), cardText('8')));
  expect(cardIn(await read())).toBe(cardText('1071'));
  const long = '9007199254740993123';
  upstream.next('getSubscription', withCard(long));
  upstream.next('listPaymentMethods', listOf(cardText('9007199254740993124'), cardText(long)));
  expect(cardIn(await read())).toBe(cardText(long));
  expect(asked()).toHaveLength(8);
});

test('the card is the new one although the list that is held is from before, and costs nothing the second time', async () => {
  const token = secret();
  await ask('listPaymentMethods', { token });
  upstream.next('getSubscription', withCard('8'));
  upstream.next('getPaymentMethod', answer(200, cardText('8')));
  expect(cardIn(await read(token))).toBe(cardText('8'));
  expect((await read(token)).cache).toContain('hit');
  expect([asked().length, asked()]).toEqual([5, expect.arrayContaining(['/api/v2/payment/method/8/'])]);
});

test.each<Reply[]>([
  [answer(404)],
  [answer(503), answer(503), answer(503)],
  [answer(200, '{"detail":"moved"}')],
  [answer(200, '<html>')],
])('the card is asked for by its id where the list is answered with %j', async (...replies) => {
  upstream.next('listPaymentMethods', ...replies);
  const got = await read();
  expect([cardIn(got), got.json.errors, got.json.meta.complete]).toEqual([textOf('getPaymentMethod'), [], true]);
});

test.each<readonly [list: Reply, card: Reply | undefined, error: object]>([
  [answer(404), answer(500), { code: 'upstream_bad_response', status: 502, retryable: true }],
  [listOf(), answer(404), { code: 'not_found', status: 404, retryable: false }],
  [answer(429, '', { 'retry-after': '7' }), undefined, { code: 'rate_limited', retry_after: 7 }], // no calls are wanted
])('the card fails with the error of the call that was to bring it: %j, %j', async (list, card, error) => {
  upstream.next('listPaymentMethods', list);
  if (card) upstream.next('getPaymentMethod', card);
  const { data, errors, meta } = (await read()).json;
  expect(data).toMatchObject({ payment_method: null, subscription: { id: 5 } });
  expect(errors).toMatchObject([{ section: 'payment_method', ...error }]);
  expect(meta).toMatchObject({ complete: false, sections: { payment_method: { state: 'failed' } } });
});

test('a card that is refused by its id fails the whole and abandons the others', async () => {
  const slow = upstream.hold('listNotifications');
  upstream.next('listPaymentMethods', listOf());
  upstream.next('getPaymentMethod', answer(403, { code: 'api_key_not_allowed' }));
  expect(await read()).toMatchObject({ status: 403, code: 'api_key_not_allowed' });
  await slow.call.then(({ left }) => left);
  slow.release();
});

test.each(['"../8"', '-1', '7.0', '7e0', '{"id":7}', '12345678901234567890'])(
  'an id that is %s is a bad answer, nothing is asked for by it, and it does not last',
  async (id) => {
    const token = secret();
    upstream.next('getSubscription', withCard(id));
    const { status, json } = await read(token);
    expect([status, json.data.payment_method, asked().length]).toEqual([200, null, 4]);
    expect(json.errors).toMatchObject([{ section: 'payment_method', code: 'upstream_bad_response', status: 502 }]);
    const again = await call(ACCOUNT, { token, headers: { 'Cache-Control': 'no-cache' } });
    expect(again.json).toMatchObject({ data: { payment_method: { id: 1071 } }, errors: [] });
  },
);

test('a card of an old list is as old as that; where neither list nor card comes, an old copy of either is given', async () => {
  const [token, other] = [secret(), secret()];
  await ask('listPaymentMethods', { token });
  await pass(40);
  expect((await read(token)).json.meta.sections.payment_method).toEqual({ state: 'stale', age: 40 });
  await ask('getPaymentMethod', { token: other, path: CARD });
  await pass(400);
  for (const one of [token, other]) {
    upstream.next('listPaymentMethods', answer(500));
    if (one === other) upstream.next('getPaymentMethod', answer(500));
    const { data, meta } = (await read(one)).json;
    expect([data.payment_method.id, meta.sections.payment_method.state]).toEqual([1071, 'stale']);
  }
});

test('without a card the list is given up, the answer has an ETag, and costs nothing the second time', async () => {
  const token = secret();
  const list = upstream.hold('listPaymentMethods');
  upstream.next('getSubscription', withCard('null'));
  const { json, headers } = await read(token);
  expect(json).toMatchObject({ data: { payment_method: null }, errors: [], meta: { complete: true } });
  await list.call.then(({ left }) => left);
  list.release();
  const again = await call(ACCOUNT, { token, headers: { 'If-None-Match': headers.get('etag')! } });
  expect([again.status, again.cache, asked().length]).toEqual([304, expect.stringContaining('hit'), 4]);
});

test('without a card there is no error where the list is refused', async () => {
  const subscription = upstream.hold('getSubscription');
  upstream.next('listPaymentMethods', answer(429));
  const pending = read();
  await pass(0);
  subscription.release(withCard('null'));
  expect((await pending).json).toMatchObject({ errors: [], meta: { complete: true } });
});

test('the card alone has the subscription read, and not shown; it is refused where that is', async () => {
  const [token, query] = [secret(), '?sections=payment_method'];
  await ask('listPaymentMethods', { token });
  const { text, cache } = await read(token, query);
  expect(text.startsWith(`{"data":{"payment_method":${cardText('1071')}},"errors":[],"meta":`)).toBe(true);
  expect([cache, (await read(token, query)).cache]).toEqual(['portico; fwd=miss', expect.stringContaining('hit')]);
  const list = upstream.hold('listPaymentMethods');
  upstream.next('getSubscription', answer(401));
  expect((await read(secret(), query)).status).toBe(401);
  list.release();
});
