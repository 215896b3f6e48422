import { expect, test } from 'vitest';
import { bundled, EXPECTED, openShop, TOKEN } from '../client/shop.ts';
import { openFront, openPage, PAGE, run, withChromium } from './browser.ts';

const openContext = withChromium();

const SCRIPT = `
  import { reportOf } from './scenario.ts';
  import { createClient } from '../../../client/src/index.ts';
  const readTwice = async (token) => {
    const portico = createClient({ token });
    await portico.getSubscription();
    await portico.getSubscription();
  };
  Object.assign(globalThis, { reportOf, readTwice });
`;

/** A page of the gateway's own origin that has the client. */
async function open() {
  const shop = await openShop();
  const front = await openFront(shop.url);
  const page = await openPage(await openContext(), front.origin + PAGE);
  await page.addScriptTag({ content: await bundled(SCRIPT, 'iife') });
  return { ...shop, front, page };
}

test('the client does in a browser what it does everywhere; a double click is one charge, and no key is kept', async () => {
  const { page, charged } = await open();
  expect(await run(page, 'reportOf', { url: '', token: TOKEN })).toEqual(EXPECTED);
  expect(charged()).toBe(1);
  expect(JSON.stringify(await run(page, 'kept'))).not.toContain(TOKEN);
});

test('in a page the HTTP cache does what copies do elsewhere', async () => {
  const { page, front } = await open();
  await run(page, 'readTwice', TOKEN);
  const reads = front.exchanges.filter(({ path }) => path === '/api/v2/subscription/');
  expect(reads.map(({ status }) => status)).toEqual([200, 304]);
  const [first, second] = reads;
  expect(second!.headers['if-none-match']).toBe(first!.answered['etag']);
  for (const { headers } of reads) expect(headers['cache-control']).not.toBe('no-cache');
});
