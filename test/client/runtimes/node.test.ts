import { expect, test } from 'vitest';
import { cookieFetch, reportOf } from './scenario.ts';
import { EXPECTED, openShop, OTHER, TOKEN } from './shop.ts';

test('the client does in Node what it does everywhere, and one double click is one charge', async () => {
  const { url, charged } = await openShop();
  expect(await reportOf({ url, token: TOKEN, other: OTHER, fetch: cookieFetch() })).toEqual(EXPECTED);
  expect(await charged()).toBe(1);
});
