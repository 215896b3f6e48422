import { expect, test } from 'vitest';
import { says } from '../../support/contract.ts';
import { openGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { everywhere } from '../../support/stages.ts';
import { answer } from '../../support/upstream.ts';
import { ACCOUNT, BILLING, listOf, REFERRAL, textOf, namesIn } from './helpers.ts';

everywhere(says('`?sections=a,b`'), async ({ call, upstream }) => {
  const { text, json } = await call(`${REFERRAL}?sections=channels,credits`);
  const [credits, channels] = [textOf('listReferralCredits'), textOf('listReferralChannels')];
  expect(text).toContain(`{"data":{"credits":${credits},"channels":${channels}},"errors":`);
  expect(namesIn(json.meta.sections)).toEqual(['credits', 'channels']);
  expect(upstream.calls).toHaveLength(2); // none of the required section, which nobody asked for
});

everywhere(says('`?fields[subscription]=id,plan` (in a page: of each item)'), async ({ call, upstream }) => {
  upstream.next('getSubscription', answer(200, '{"id":5,"a":[{"id":6}],"plan":9007199254740993123,"term":"plan"}'));
  upstream.next('listNotifications', listOf('{"id":1.0,"type":"x"} ,\n {"type":"y","id": 2,"id2":3}'));
  const query = 'sections=subscription,notifications&fields%5Bsubscription%5D=plan,id&fields[notifications]=id';
  const page = '{"count":1,"next":null,"previous":null,"results":[{"id":1.0},{"id":2}]}';
  const data = `{"data":{"subscription":{"id":5,"plan":9007199254740993123},"notifications":${page}},`;
  expect((await call(`${ACCOUNT}?${query}`)).text).toContain(data);
});

everywhere(says('`?page_size[transactions]=5` (1 to 100).'), async ({ call, upstream }) => {
  const path = `${BILLING}?sections=transactions`;
  const sized = (size: string) => call(`${path}&page_size[transactions]=${size}`);
  for (const size of ['5', '100', '5']) await sized(size);
  await call(path);
  const targets = ['?page_size=5', '?page_size=100', ''].map((query) => `/api/v2/payment/transaction/${query}`);
  expect(upstream.calls.map(({ target }) => target)).toEqual(targets);
  for (const size of ['0', '101', '-1', 'x', '', '5.0', '05'])
    expect((await sized(size)).json).toMatchObject({ status: 400, errors: [{ field: 'page_size[transactions]' }] });
});

everywhere(says('Unknown names: 400.'), async ({ call, upstream }) => {
  const { status, json } = await call(`${ACCOUNT}?fields%5Bnope%5D=id&sections=nope&page_size[subscription]=5`);
  expect([status, json]).toMatchObject([400, { code: 'validation_failed', instance: ACCOUNT }]);
  const fields = (json.errors as { field: string }[]).map(({ field }) => field);
  expect(fields.toSorted()).toEqual(['fields[nope]', 'page_size[subscription]', 'sections']);
  expect(upstream.calls).toEqual([]);
});

const { call, upstream } = openGateway();

test.each([
  ['sections=', 1],
  ['sections=Subscription', 1],
  ['sections=constructor,__proto__,prototype,toString', 4],
  ['fields[__proto__]=id', 1],
  ['fields[subscription]=', 1],
  ['fields[subscription]=id,x_new_field,constructor', 2],
  ['fields[notifications]=count', 1],
  ['page_size[payment_method]=5', 1],
])('%s is a 400 with %i entries, and costs no call', async (query, many) => {
  const { code, json } = await call(`${ACCOUNT}?${query}`);
  const field = query.split('=')[0];
  expect([code, json.errors]).toMatchObject(['validation_failed', Array.from({ length: many }, () => ({ field }))]);
  expect([json.errors.length, upstream.calls.length]).toEqual([many, 0]);
});

test('the order is that of the answer, however it is asked for', async () => {
  for (const query of [
    'sections=channels&sections=credits&fields[credits]=status&fields[channels]=code&fields[credits]=id,id',
    'sections=channels%2Ccredits&fields[credits]=status,+id,%20id&fields%5Bchannels%5D=code',
  ]) {
    const { text, json } = await call(`${REFERRAL}?${query}`);
    expect(text).toContain('"results":[{"id":1501,"status":"pending"}]');
    expect([namesIn(json.data), json.data.channels]).toEqual([['credits', 'channels'], [{ code: 'SAVE20' }]]);
  }
});

test('fields that an item does not have are left out, and of what has failed there are none', async () => {
  upstream.next('listPaymentMethods', listOf('{"id":1071,"type":"Wallet"}'));
  upstream.next('getReferralConfig', answer(400));
  const query = 'fields[payment_method]=id,brand,last4&fields[referral_config]=id';
  const { json } = await call(`${ACCOUNT}?${query}`, { token: secret() });
  expect(json.data).toMatchObject({ payment_method: { id: 1071 }, referral_config: null });
});

/** Channels that the upstream answers with this text, of which `id` and `code` are wanted. */
async function picked(text: string): Promise<string> {
  upstream.next('listReferralChannels', answer(200, text));
  const query = 'sections=channels&fields[channels]=id,code';
  const { text: got } = await call(`${REFERRAL}?${query}`, { token: secret() });
  return /^\{"data":\{"channels":(.*)\},"errors":\[\],"meta"/s.exec(got)?.[1] ?? got;
}

test.each([
  [' { "id" : [ 1 , "]}" ] , "b" : {"id":1} } ', '{"id":[ 1 , "]}" ]}'],
  ['{"b":"\\\\","id":"\\\\\\""}', '{"id":"\\\\\\""}'],
  ['{"\\u0069d":12345678901234567890.0}', '{"id":12345678901234567890.0}'],
  ['{"results":{"id":1},"__proto__":{"code":2},"code":null}', '{"code":null}'],
  ['[{"a":1,"id":2},null,1.5,"text",[{"id":1,"b":2}]]', '[{"id":2},null,1.5,"text",[{"id":1}]]'],
  ['{}', '{}'],
])('of %s comes %s', async (text, expected) => expect(await picked(text)).toBe(expected));
