import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';

const PAGE = join(import.meta.dirname, 'page.html');

/** What the page could read of an answer; or that the browser did not let it. */
export type Found = Readonly<
  Record<
    string,
    | { readonly status: number; readonly headers: Readonly<Record<string, string | null>>; readonly text: string }
    | { readonly blocked: string }
  >
>;

export interface PageServer extends AsyncDisposable {
  readonly origin: string;
  /** Opens the page in a browser of its own, and resolves with what the page has found. */
  visit(query: Readonly<Record<string, string>>): Promise<Found & { readonly timing: readonly string[] }>;
}

/** Serves the page on an origin of its own. */
export async function servePage(): Promise<PageServer> {
  const page = await readFile(PAGE);
  const { promise: found, resolve } = Promise.withResolvers<string>();
  const server = createServer((request, response) => {
    if (request.method === 'POST') void text(request).then(resolve);
    response.setHeader('Content-Type', 'text/html').end(request.method === 'POST' ? '' : page);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // a listening TCP server has one
  return {
    origin,
    async visit(query) {
      await using browser = await openChromium(`${origin}/?${new URLSearchParams(query).toString()}`);
      return JSON.parse(await Promise.race([found, browser.ended])) as Awaited<ReturnType<PageServer['visit']>>;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await once(server.close(), 'close');
    },
  };
}

const FLAGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];

interface Chromium extends AsyncDisposable {
  /** Rejects, with what it has said, should it end by itself. */
  readonly ended: Promise<never>;
  /** With `--remote-debugging-pipe`: what it is told, and what it answers. */
  readonly pipes: { readonly commands: Writable; readonly messages: Readable };
}

/** Debian's; `CHROMIUM` names another one. */
export async function openChromium(...args: readonly string[]): Promise<Chromium> {
  const profile = await mkdtemp(join(tmpdir(), 'portico-chromium-'));
  const program = process.env['CHROMIUM'] ?? 'chromium';
  const stdio = ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] as const;
  const child = spawn(program, [...FLAGS, `--user-data-dir=${profile}`, ...args], { stdio: [...stdio] });
  const [, , errors, commands, messages] = child.stdio as [null, null, Readable, Writable, Readable]; // as in `stdio`
  commands.on('error', () => {}); // it has ended
  const said = text(errors);
  const closed = new Promise<unknown>((resolve) => {
    child.once('error', resolve);
    child.once('close', resolve);
  });
  const ended = closed.then(async (reason) => {
    throw new Error(`${program} has ended: ${String(reason)}\n${await said}`);
  });
  ended.catch(() => undefined); // it ends in any case
  return {
    ended,
    pipes: { commands, messages },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await closed;
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
