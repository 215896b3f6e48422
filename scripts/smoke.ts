import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { openApiText } from '../src/routes/document.ts';
import { accountTables } from '../test/support/account-api.ts';
import { openCollector } from '../test/support/collector.ts';
import { freePort } from './free-port.ts';

const startLimitMs = 10_000;

async function firstAnswer(url: string, child: ChildProcess): Promise<Response> {
  const until = Date.now() + startLimitMs;
  while (child.exitCode === null && Date.now() < until) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer !== undefined) return answer;
    await delay(50);
  }
  throw new Error(`no answer from ${url}; exit code ${child.exitCode}`);
}

/** A copy, without the sources and their packages round it. */
const bundle = await mkdtemp(join(tmpdir(), 'portico-smoke-'));
await cp('dist', bundle, { recursive: true });

/** Starts the bundle as the image does. */
async function withBundle(env: NodeJS.ProcessEnv, act: (url: string, admin: string) => Promise<void>): Promise<void> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, ['--min-semi-space-size=16', 'portico.mjs'], {
    cwd: bundle,
    env: { PATH: process.env['PATH'], PORT: String(port), ADMIN_PORT: String(adminPort), LOG_LEVEL: 'info', ...env },
    stdio: 'inherit',
  });
  try {
    const url = `http://127.0.0.1:${port}`;
    const answer = await firstAnswer(`${url}/livez`, child);
    if (answer.status !== 200) throw new Error(`/livez answered ${answer.status}`);
    await act(url, `http://127.0.0.1:${adminPort}`);
    await leave(child);
  } finally {
    child.kill('SIGKILL');
  }
}

async function leave(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const [code] = (await exited) as [number | null];
  if (code !== 0) throw new Error(`SIGTERM ended it with ${code}`);
}

async function isOk(url: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(url, { headers });
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}`);
  return answer.text();
}

const CONSOLE = ['', '/console.js', '/console.css', '/data'];

async function sandboxAnswers(url: string, admin: string): Promise<void> {
  await isOk(`${url}/bff/v1/account-overview`, { Authorization: 'Token sandbox-paid-key' });
  for (const name of ['', '/swagger-ui-bundle.js', '/swagger-ui.css']) await isOk(`${url}/docs${name}`);
  for (const name of CONSOLE) await isOk(`${admin}/console${name}`);
  if ((await isOk(`${url}/openapi.json`)) !== (await openApiText(accountTables)))
    throw new Error('/openapi.json is not what the source makes');
}

/** The SDK is loaded from beside the bundle, and sends what is left at the end. */
async function tracesAreSent(): Promise<void> {
  const collector = await openCollector();
  try {
    await withBundle({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, sandboxAnswers);
    const names = collector.spans.map(({ name }) => name);
    if (!names.includes('GET /bff/v1/account-overview')) throw new Error(`these spans came: ${names.join(', ')}`);
  } finally {
    await collector.close();
  }
}

/** So is what words after the name need. */
function doctorFinds(words: string, env: NodeJS.ProcessEnv): void {
  const { stdout } = spawnSync(process.execPath, ['portico.mjs', 'doctor'], { cwd: bundle, env, encoding: 'utf8' });
  if (!stdout.includes(words)) throw new Error(`the doctor does not find that the store ${words}: ${stdout}`);
}

/** So is the driver. */
async function storeIsUsed(): Promise<void> {
  const port = await freePort();
  const server = spawn('redis-server', ['--port', String(port), '--save', ''], { cwd: bundle, stdio: 'ignore' });
  const client = new Redis(port).on('error', () => {}); // until it listens
  try {
    await client.ping();
    const env = { STORE_URL: `redis://127.0.0.1:${port}`, SECRETS: 'for-development-only-and-known-to-all' };
    await withBundle(env, sandboxAnswers);
    if ((await client.dbsize()) === 0) throw new Error('nothing was stored in Redis');
    doctorFinds('keeps nothing on disk', env);
  } finally {
    client.disconnect();
    server.kill();
  }
}

try {
  await withBundle({}, sandboxAnswers);
  // Nobody is at that upstream.
  await withBundle({ NODE_ENV: 'production', UPSTREAM_BASE_URL: 'http://127.0.0.1:9' }, async () => undefined);
  await tracesAreSent();
  await storeIsUsed();
} finally {
  await rm(bundle, { recursive: true, force: true });
}
console.log('The bundle started, with a sandbox, an upstream and Redis, answered with 200 and left with 0.');
