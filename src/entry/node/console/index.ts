import { GatewayError } from '../../../core/errors.ts';
import { type Answer, jsonAnswer } from '../../../middleware/reply.ts';
import type { ClientRequest } from '../../../middleware/request.ts';
import { pageAt, type Route } from '../../../routes/route.ts';
import { assets } from '../assets.ts';
import type { nodeDeps } from '../deps.ts';

/** The console: a page for operators, and what it shows. */
export function consoleRoutes({ deps, recordings }: Pick<ReturnType<typeof nodeDeps>, 'deps' | 'recordings'>): Route[] {
  const { clock, config } = deps;
  const data = async ({ query }: ClientRequest) => {
    const since = Number(new URLSearchParams(query).get('since'));
    return jsonAnswer(recordings?.shown(since, clock.now()));
  };
  const files = FILES.map(([path, name, type]) =>
    shown(config.adminHost, path, async () => {
      const policed = path === PAGE_PATH && { 'Content-Security-Policy': POLICY };
      const headers = { 'Cache-Control': 'no-cache', 'Content-Type': `${type}; charset=utf-8`, ...policed };
      return { status: 200, headers, body: await fileOf(name) };
    }),
  );
  return [...files, shown(config.adminHost, '/console/data', data)];
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'";

const PAGE_PATH = '/console';
const FILES = [
  [PAGE_PATH, 'console.html', 'text/html'],
  ['/console/console.css', 'console.css', 'text/css'],
  ['/console/console.js', 'console.js', 'text/javascript'],
] as const;
const fileOf = assets('console', (name) => new URL(`../../../console/${name}`, import.meta.url));

/** Neither logged nor counted. */
const shown = (adminHost: string, path: string, answerOf: (request: ClientRequest) => Promise<Answer>): Route => ({
  ...pageAt(path, async (request) => {
    checkHost(request.header('host') ?? '', adminHost);
    const isOpened = path === PAGE_PATH && request.header('sec-fetch-mode') === 'navigate';
    if (FOREIGN.has(request.header('sec-fetch-site') ?? '') && !isOpened)
      throw GatewayError.of('forbidden', { detail: 'Another site may not read the console.' });
    return answerOf(request);
  }),
  isProbe: true,
});

const FOREIGN = new Set(['cross-site', 'same-site']);

/**
 * A page of another site whose name has been made to lead here (DNS rebinding) would be allowed to read the answer: so it is
 * given only where it was asked for by an address, or by a name that is not another's.
 * @throws GatewayError `forbidden`
 */
function checkHost(host: string, adminHost: string): void {
  const name = URL.parse(`http://${host}`)?.hostname ?? '';
  const isAddress =
    name.startsWith('[') || name.split('.').every((part) => part !== '' && Number.isInteger(Number(part)));
  if (!isAddress && name !== 'localhost' && name !== adminHost.toLowerCase())
    throw GatewayError.of('forbidden', { detail: HOST_REFUSED });
}

const HOST_REFUSED = 'The console is shown at an address, at localhost and at ADMIN_HOST, not by another name.';
