import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';

// What somebody does first, with the Node that runs this file: the gateway is started as `npm start` does it, and the
// package is installed elsewhere, for the gateway that the README shows.

const ROOT = new URL('../', import.meta.url).pathname;
const START_LIMIT_MS = 30_000;
const folder = mkdtempSync(join(tmpdir(), 'portico-outside-'));
const children: ChildProcess[] = [];

const npm = (cwd: string, ...args: string[]) =>
  execFileSync('npm', [...args, '--loglevel=error'], { cwd, encoding: 'utf8' }).trim();

/** Starts a file, and resolves with its URL when it says that it listens. */
async function start(cwd: string, file: string, variables: Readonly<Record<string, string>>): Promise<string> {
  const port = String(await freePort());
  const env = { PATH: process.env['PATH'], PORT: port, ADMIN_PORT: '0', ...variables };
  const child = spawn(process.execPath, [file], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let printed = '';
  const late = setTimeout(() => child.kill(), START_LIMIT_MS);
  for await (const text of child.stdout.setEncoding('utf8')) {
    printed += String(text);
    if (!printed.includes('"msg":"listening"')) continue;
    clearTimeout(late);
    child.stdout.resume();
    return `http://127.0.0.1:${port}`;
  }
  throw new Error(`${file} has ended: ${printed}`);
}

async function read(url: string): Promise<void> {
  const answer = await fetch(url, { headers: { Authorization: 'Token sandbox-paid-key' } });
  const text = await answer.text();
  if (answer.status !== 200 || !text.includes('"complete":true')) throw new Error(`${url}: ${answer.status} ${text}`);
}

/** The only one in TypeScript. */
const [, app = ''] = /^```ts\n(.*?)^```$/ms.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? [];

try {
  const sandbox = String(await freePort());
  const url = await start(ROOT, 'src/entry/node.ts', { SANDBOX_PORT: sandbox });
  await read(`${url}/bff/v1/account-overview`);

  const tarball = npm(ROOT, 'pack', '--pack-destination', folder).split('\n').at(-1) ?? '';
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  npm(folder, 'install', `./${tarball}`, 'hono');
  writeFileSync(join(folder, 'app.ts'), app);
  const own = await start(folder, 'app.ts', { UPSTREAM_BASE_URL: `http://127.0.0.1:${sandbox}` });
  await read(`${own}/bff/v1/wallet`);
  console.log(`Node ${process.version}: the gateway starts, and so does the README's, with the package.`);
} finally {
  for (const child of children) child.kill();
  rmSync(folder, { recursive: true, force: true });
}
