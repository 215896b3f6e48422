import { expect, test } from 'vitest';
import { bundled } from '../client/runtimes/bundle.ts';
import { EXPECTED, openShop, OTHER, TOKEN } from '../client/runtimes/shop.ts';
import { openPage, run, withChromium } from './browser.ts';
import { openFront, PAGE } from './sites.ts';

const openContext = withChromium();

const SCRIPT = `
  import { reportOf } from './scenario.ts';
  Object.assign(globalThis, { reportOf });
`;

/** A page of the gateway's own origin that has the client. */
async function open() {
  const shop = await openShop();
  const front = await openFront(shop.url);
  const page = await openPage(await openContext(), front.origin + PAGE);
  await page.addScriptTag({ content: await bundled(SCRIPT, 'iife') });
  return { ...shop, front, page };
}

test('the client does in a browser what it does everywhere, and one double click is one charge', async () => {
  const { page, charged } = await open();
  expect(await run(page, 'reportOf', { url: '', token: TOKEN, other: OTHER })).toEqual(EXPECTED);
  expect(await charged()).toBe(1);
});

test('in a page the HTTP cache does what copies do elsewhere', async () => {
  const { page, front } = await open();
  await run(page, 'reportOf', { url: '', token: TOKEN, other: OTHER });
  const reads = front.exchanges.filter(({ path }) => path === '/api/v2/subscription/').slice(-2);
  expect(reads.map(({ status }) => status)).toEqual([200, 304]);
  expect(reads[1]!.headers['if-none-match']).toBe(reads[0]!.answered['etag']);
  // Neither asks the gateway for a fresh copy.
  for (const { headers } of reads) expect(headers['cache-control']).not.toBe('no-cache');
});

test('a key that the page was given is kept nowhere', async () => {
  const { page } = await open();
  await run(page, 'reportOf', { url: '', token: TOKEN, other: OTHER });
  expect(JSON.stringify(await run(page, 'kept'))).not.toContain(TOKEN);
});
