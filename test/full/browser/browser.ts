import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { testClock } from '../../support/clock.ts';
import { startGateway } from '../../support/gateway.ts';
import { secret } from '../../support/secrets.ts';
import { Upstream } from '../../support/upstream.ts';

/** The Chromium that is installed; `CHROMIUM` names another one. */
const installed = () => execFileSync('sh', ['-c', 'command -v "${CHROMIUM:-chromium}"'], { encoding: 'utf8' }).trim();

/** A Chromium for all tests of a file. Resolves with an empty profile, whose pages share what one user's tabs do. */
export function withChromium(): (options?: BrowserContextOptions) => Promise<BrowserContext> {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: installed(), args: ['--no-sandbox'] });
  });
  afterAll(() => browser.close());
  return async (options) => {
    const context = await browser.newContext(options);
    onTestFinished(() => context.close());
    return context;
  };
}

export async function openPage(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

/** Calls a function of `page.html`, and resolves with what its promise does. */
export const run = <T = unknown>(page: Page, name: string, ...args: readonly unknown[]): Promise<T> =>
  page.evaluate<T>(`${name}(...${JSON.stringify(args)})`);

const textOf = (page: Page): Promise<string> => page.locator('html').innerText();

/** Calls a function of `page.html` that leaves it, and resolves with where it led to and the text there. */
export async function leave(page: Page, name: string, ...args: readonly unknown[]) {
  const loaded = page.waitForEvent('load');
  await run(page, name, ...args);
  await loaded;
  return { url: page.url(), text: await textOf(page) };
}

/** What axe-core finds wrong on the page, as it is now, with the elements. */
export async function violationsOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations.flatMap(({ impact, id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${impact} ${id}: ${html} ${failureSummary}`),
  );
}

/** A gateway on sockets, before an upstream whose answers are good. */
export async function openGateway(env: Readonly<Record<string, string>>, admin = false) {
  const [upstream, clock] = [new Upstream(), testClock()];
  const behind = await upstream.listen();
  const gateway = await startGateway(behind.url, { env, clock, admin });
  onTestFinished(async () => {
    await gateway.close();
    await behind.close();
  });
  return { upstream, clock, gateway, token: secret() };
}

/** Where `page.html` is, on every site. */
export const PAGE = '/page.html';

/** What a script gets of an answer, by `ask` of the page. */
export interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The error, where the browser keeps the answer to itself. The rest is undefined then. */
  readonly blocked?: string;
}

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly status: number;
  readonly answered: IncomingHttpHeaders;
  readonly text: string;
}

/** `localhost` and `127.0.0.1` are two sites to a browser; ports are but two origins. */
type Host = 'localhost' | '127.0.0.1';

/** A site that has the page, which browsers may keep for an hour, and leads from `/to?…` to wherever is said. */
export const openSite = (host: Host) =>
  serve(host, ({ url = '' }, response) => response.writeHead(302, { Location: url.slice('/to?'.length) }).end());

/** The page, and before all other paths the gateway, as a reverse proxy in production has it. */
export async function openFront(gatewayUrl: string) {
  const exchanges: Exchange[] = [];
  const site = await serve('localhost', (asked, response) => {
    void pass(gatewayUrl, asked).then(({ body, ...exchange }) => {
      exchanges.push({ ...exchange, text: body.toString() });
      response.writeHead(exchange.status, exchange.answered).end(body);
    });
  });
  return { ...site, exchanges };
}

async function serve(host: Host, otherwise: (asked: IncomingMessage, response: ServerResponse) => void) {
  const html = await readFile(join(import.meta.dirname, 'page.html'));
  let visits = 0;
  const server = createServer((asked, response) => {
    if (asked.url !== PAGE) return otherwise(asked, response);
    visits++;
    response.setHeader('Cache-Control', 'max-age=3600').setHeader('Content-Type', 'text/html').end(html);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    await once(server.close(), 'close');
  });
  return { origin: `http://${host}:${(server.address() as AddressInfo).port}`, visits: () => visits };
}

/** With the `Host` of the browser. */
async function pass(gatewayUrl: string, asked: IncomingMessage) {
  const { method = '', url: path = '', headers } = asked;
  const sending = request(gatewayUrl + path, { method, headers });
  sending.end(await buffer(asked));
  const [answer] = (await once(sending, 'response')) as [IncomingMessage];
  const { statusCode: status = 0, headers: answered } = answer;
  return { method, path, headers, status, answered, body: await buffer(answer) };
}
