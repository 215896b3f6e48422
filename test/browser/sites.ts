import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { listenLocally } from '../support/ports.ts';

const HTML = join(import.meta.dirname, 'page.html');

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

/** A request of the browser, and what it got. */
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

interface Site {
  readonly origin: string;
  /** How often the page was asked for. */
  readonly visits: () => number;
}

/** A site that has the page, which browsers may keep for an hour, and leads from `/to?…` to wherever is said. */
export const openSite = (host: Host): Promise<Site> =>
  serve(host, ({ url = '' }, response) => response.writeHead(302, { Location: url.slice('/to?'.length) }).end());

/** The page, and before all other paths the gateway, as a reverse proxy in production has it. */
export async function openFront(gatewayUrl: string): Promise<Site & { readonly exchanges: readonly Exchange[] }> {
  const exchanges: Exchange[] = [];
  const site = await serve('localhost', (asked, response) => {
    void pass(gatewayUrl, asked).then(({ body, ...exchange }) => {
      exchanges.push({ ...exchange, text: body.toString() });
      response.writeHead(exchange.status, exchange.answered).end(body);
    });
  });
  return { ...site, exchanges };
}

async function serve(host: Host, otherwise: (asked: IncomingMessage, response: ServerResponse) => void): Promise<Site> {
  const html = await readFile(HTML);
  let visits = 0;
  const server = createServer((asked, response) => {
    if (asked.url !== PAGE) return otherwise(asked, response);
    visits++;
    response.setHeader('Cache-Control', 'max-age=3600').setHeader('Content-Type', 'text/html').end(html);
  });
  const port = await listenLocally(server);
  onTestFinished(async () => {
    server.closeAllConnections();
    await once(server.close(), 'close');
  });
  return { origin: `http://${host}:${port}`, visits: () => visits };
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
