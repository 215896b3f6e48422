import { isIPv4 } from 'node:net';
import { GatewayError } from '../../../core/errors.ts';
import { type Answer, jsonAnswer } from '../../../http/reply.ts';
import type { ClientRequest } from '../../../core/request.ts';
import { pageAt, type Route } from '../../../routes/route.ts';
import { assets } from '../assets.ts';
import type { Recordings } from './recordings.ts';

/** The console: a page for operators, and what it shows. */
export function consoleRoutes(adminHost: string, recordings: Recordings | undefined): Route[] {
  /** Neither logged nor counted. */
  const shown = (path: string, answerOf: (request: ClientRequest) => Promise<Answer>): Route => ({
    ...pageAt(path, async (request) => {
      checkHost(request.header('host') ?? '', adminHost);
      const isOpened = path === PAGE && request.header('sec-fetch-mode') === 'navigate';
      if (/^(cross|same)-site$/.test(request.header('sec-fetch-site') ?? '') && !isOpened)
        throw GatewayError.of('forbidden', { detail: 'Another site may not read the console.' });
      return answerOf(request);
    }),
    isProbe: true,
  });
  const file = (path: string, name: string, headers: Readonly<Record<string, string>>) =>
    shown(path, async () => {
      return { status: 200, headers: { 'Cache-Control': 'no-cache', ...headers }, body: await fileOf(name) };
    });
  return [
    file(PAGE, 'console.html', { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': POLICY }),
    file('/console/console.css', 'console.css', { 'Content-Type': 'text/css; charset=utf-8' }),
    file('/console/console.js', 'console.js', { 'Content-Type': 'text/javascript; charset=utf-8' }),
    shown('/console/data', async ({ query }) => {
      const since = Number(new URLSearchParams(query).get('since'));
      return jsonAnswer(recordings?.shown(since));
    }),
  ];
}

const PAGE = '/console';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'";

const fileOf = assets('console', (name) => new URL(`../../../console/${name}`, import.meta.url));

/**
 * A page of another site whose name has been made to lead here (DNS rebinding) would be allowed to read the answer: so it is
 * given only where it was asked for by an address, or by a name that is not another's.
 * @throws GatewayError `forbidden`
 */
function checkHost(host: string, adminHost: string): void {
  const name = URL.parse(`http://${host}`)?.hostname ?? '';
  const isAddress = name.startsWith('[') || isIPv4(name);
  if (!isAddress && name !== 'localhost' && name !== adminHost.toLowerCase())
    throw GatewayError.of('forbidden', {
      detail: 'The console is shown at an address, at localhost and at ADMIN_HOST, not by another name.',
    });
}
