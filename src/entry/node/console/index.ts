import { createRequire } from 'node:module';
import type { Deps } from '../../../app.ts';
import { GatewayError } from '../../../core/errors.ts';
import { type Answer, NO_STORE } from '../../../middleware/reply.ts';
import type { ClientRequest } from '../../../middleware/request.ts';
import { pageAt, type Route } from '../../../routes/route.ts';
import { assets } from '../assets.ts';
import type { ReadMetrics } from '../metrics/measured.ts';
import { Measuring } from './figures.ts';
import type { Shown } from './recorder.ts';
import { Watchers } from './watchers.ts';

interface ConsoleOptions {
  readonly deps: Pick<Deps, 'clock' | 'config'>;
  readonly recordings: Shown;
  readonly read: ReadMetrics;
  readonly isStoreShared: boolean;
}

/** The console: a page for operators, and what it shows. `end`: when the process stops. */
export function openConsole({ deps: { clock, config }, recordings, read, isStoreShared }: ConsoleOptions) {
  const { slowMs, adminHost } = config;
  const measuring = new Measuring(read, recordings);
  const watchers = new Watchers({ clock, recordings, measuring, slowMs, isStoreShared });
  const events = async (request: ClientRequest): Promise<Answer> => {
    const body = request.method === 'HEAD' ? null : watchers.watch();
    return { status: 200, headers: { ...NO_STORE, 'Content-Type': 'text/event-stream' }, body };
  };
  const pages = Object.entries(FILES).map(([path, [name, headers]]) =>
    shown(adminHost, path, async () => ({ status: 200, headers, body: await fileOf(name) })),
  );
  return { routes: [...pages, shown(adminHost, '/console/events', events)], end: () => watchers.end() };
}

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'";

const KEPT = { 'Cache-Control': 'no-cache' } as const;
const PAGE = { ...KEPT, 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': POLICY } as const;
const SCRIPT = { ...KEPT, 'Content-Type': 'text/javascript; charset=utf-8' } as const;
const STYLE = { ...KEPT, 'Content-Type': 'text/css; charset=utf-8' } as const;

const PAGE_PATH = '/console';

/** By path. */
const FILES: Readonly<Record<string, readonly [name: string, headers: Readonly<Record<string, string>>]>> = {
  [PAGE_PATH]: ['console.html', PAGE],
  '/console/console.css': ['console.css', STYLE],
  '/console/console.js': ['console.js', SCRIPT],
  '/console/plots.js': ['plots.js', SCRIPT],
  '/console/requests.js': ['requests.js', SCRIPT],
  '/console/tables.js': ['tables.js', SCRIPT],
  '/console/waterfall.js': ['waterfall.js', SCRIPT],
  '/console/uPlot.iife.min.js': ['uPlot.iife.min.js', SCRIPT],
  '/console/uPlot.min.css': ['uPlot.min.css', STYLE],
};

const fileOf = assets('console', (name) =>
  name.startsWith('uPlot')
    ? createRequire(import.meta.url).resolve(`uplot/dist/${name}`)
    : new URL(`../../../console/${name}`, import.meta.url),
);

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
