import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const startLimitMs = 10_000;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function firstAnswer(url: string, child: ChildProcess): Promise<Response> {
  const until = Date.now() + startLimitMs;
  while (child.exitCode === null && Date.now() < until) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer !== undefined) return answer;
    await delay(50);
  }
  throw new Error(`no answer from ${url}; exit code ${child.exitCode}`);
}

/** Starts the bundle away from the sources, with no upstream set, asks it for /livez and stops it. */
async function smoke(): Promise<void> {
  const port = await freePort();
  const env = { PATH: process.env['PATH'], PORT: String(port), ADMIN_PORT: '0', LOG_LEVEL: 'info' };
  const child = spawn(process.execPath, ['--enable-source-maps', 'portico.mjs'], {
    cwd: 'dist',
    env,
    stdio: 'inherit',
  });
  try {
    const answer = await firstAnswer(`http://127.0.0.1:${port}/livez`, child);
    if (answer.status !== 200) throw new Error(`/livez answered ${answer.status}`);
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    const [code] = (await exited) as [number | null];
    if (code !== 0) throw new Error(`SIGTERM ended it with ${code}`);
    console.log('The bundle started, answered /livez with 200 and left with 0.');
  } finally {
    child.kill('SIGKILL');
  }
}

await smoke();
