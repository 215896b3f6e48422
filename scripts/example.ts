import { type ChildProcess, execFileSync, spawn, type StdioOptions } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { serveDistance } from './distance.ts';
import { freePort } from './free-port.ts';
import { installIn } from './install.ts';

// The page of examples/dashboard, with a gateway and a sandbox behind it. They are on one origin: Vite's server passes on what is
// not the page's.

const ROOT = new URL('../', import.meta.url).pathname;
const PAGE = `${ROOT}examples/dashboard/`;
const PORT = 5173;
const START_LIMIT_MS = 60_000;

/** Copies get old within seconds here, so that nobody has to wait for half a minute to see what the gateway does then. */
const policy = { fresh: 3, stale: 0, on_error: 3600 };
/** Beyond that no copy is kept, so that one sees a section that is not there. */
const brief = { ...policy, on_error: 0 };
const READS = [
  'getSubscription',
  'getPaymentMethod',
  'listPaymentMethods',
  'getReferralConfig',
  'listTransactions',
  'listReferralCredits',
];

const settings = {
  ADMIN_PORT: '0',
  SESSIONS: 'true',
  SECRETS: randomBytes(32).toString('hex'),
  CACHE_POLICY: JSON.stringify({ ...Object.fromEntries(READS.map((id) => [id, policy])), listNotifications: brief }),
  LOG_LEVEL: process.env['LOG_LEVEL'] ?? 'warn',
};

const children: ChildProcess[] = [];
let isEnding = false;

/**
 * Without our own variables and `.env`: they may be set for another upstream. What it prints is shown with `LOG_LEVEL` only:
 * the gateway says its own address, which is not the one to open.
 */
function start(name: string, file: string, env: Readonly<Record<string, string>>, ...args: readonly string[]): void {
  const shown = process.env['LOG_LEVEL'] === undefined ? 'ignore' : 'inherit';
  const stdio: StdioOptions = ['ignore', shown, 'inherit'];
  const child = spawn(process.execPath, [file, ...args], {
    cwd: PAGE,
    env: { PATH: process.env['PATH'], ...env },
    stdio,
  });
  child.once('exit', (code, signal) => {
    if (isEnding) return;
    console.error(`The ${name} has ended with ${code ?? signal}.`);
    void end(1);
  });
  children.push(child);
}

const isLeft = () => children.some(({ exitCode, signalCode }) => exitCode === null && signalCode === null);

async function end(code: number): Promise<void> {
  isEnding = true;
  for (const child of children) child.kill('SIGTERM');
  for (let tries = 0; tries < 100 && isLeft(); tries += 1) await delay(50);
  for (const child of children) child.kill('SIGKILL');
  process.exit(code);
}

async function answers(url: string): Promise<void> {
  const until = Date.now() + START_LIMIT_MS;
  while (Date.now() < until) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    await delay(50);
  }
  throw new Error(`no answer from ${url}`);
}

async function run(): Promise<void> {
  const port = await freePort(Number(process.env['EXAMPLE_PORT'] ?? PORT));
  installIn(PAGE);
  execFileSync('npm', ['run', 'build', '--silent', '-w', 'client'], { cwd: ROOT, stdio: 'inherit' });
  execFileSync('npm', ['run', 'build', '--silent', '--', '--logLevel', 'warn'], { cwd: PAGE, stdio: 'inherit' });
  const [gateway, sandbox] = [await freePort(), await freePort()];
  const page = `http://127.0.0.1:${port}`;
  const ports = { PORT: String(gateway), SANDBOX_PORT: String(sandbox) };
  start('gateway', `${ROOT}src/entry/node.ts`, { ...settings, ...ports, ALLOWED_ORIGINS: page });
  await answers(`http://127.0.0.1:${gateway}/livez`);
  const urls = {
    GATEWAY_URL: `http://127.0.0.1:${gateway}`,
    SANDBOX_URL: `http://127.0.0.1:${sandbox}`,
    DISTANCE_URL: `http://127.0.0.1:${await serveDistance({ page: port, gateway })}`,
  };
  start('page', `${PAGE}node_modules/vite/bin/vite.js`, urls, 'preview', '--port', String(port), '--logLevel', 'warn');
  await answers(`${page}/`);
  console.log(`The page is at ${page}`);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void end(0));
await run().catch(async (error: unknown) => {
  if (!isEnding) console.error(error instanceof Error ? error.message : error);
  await end(1);
});
