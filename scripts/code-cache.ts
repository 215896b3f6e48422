import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setTimeout as delay } from 'node:timers/promises';
import { compile } from '../src/entry/node/code-cache.ts';
import { freePort } from './free-port.ts';

const START_LIMIT_MS = 30_000;

/**
 * Starts the bundled gateway in this process, stops it, and keeps what V8 compiled for that. Nobody is at its upstream:
 * what a start does to warm up is what most of the code is compiled for.
 */
async function writeCodeCache(file: string): Promise<void> {
  const port = await freePort();
  const { cachePath, script, run } = compile(pathToFileURL(file));
  Object.assign(process.env, { PORT: String(port), ADMIN_PORT: '0', UPSTREAM_BASE_URL: 'http://127.0.0.1:9' });
  process.once('exit', (code) => {
    if (code === 0) writeFileSync(cachePath, script.createCachedData());
  });
  run();
  await isLive(`http://127.0.0.1:${port}/livez`);
  process.kill(process.pid, 'SIGTERM');
}

async function isLive(url: string): Promise<void> {
  const until = Date.now() + START_LIMIT_MS;
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    if (Date.now() > until) throw new Error(`no answer from ${url}`);
    await delay(20);
  }
}

await writeCodeCache(resolve(process.argv[2] ?? ''));
