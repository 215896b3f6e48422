import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { call } from '../support/http.ts';
import { emptyFolder, ROOT, run, type Running } from './node-gateway.ts';
import { freePort } from '../support/ports.ts';

export interface WorkerGateway extends Running {
  readonly url: string;
}

/**
 * The worker of `wrangler.toml` in a workerd of this machine, with these variables over those of the file, by
 * `wrangler dev`: with the build, the assets and the log of a deployment. The proxy that it puts before the worker does
 * not pass it on when a client leaves before the answer has begun; bare-worker.ts is for that.
 */
export async function startWorker(vars: Readonly<Record<string, string>>): Promise<WorkerGateway> {
  const folder = emptyFolder();
  const envFile = join(folder, 'variables.env');
  writeFileSync(
    envFile,
    Object.entries(vars)
      .map(([name, value]) => `${name}='${value}'\n`)
      .join(''),
  );
  const port = String(await freePort());
  const files = ['--env-file', envFile, '--persist-to', join(folder, 'state')];
  const where = ['--ip', '127.0.0.1', '--port', port, '--inspector-port', '0'];
  const running = run({
    cwd: ROOT,
    env: {
      // The build that wrangler.toml names runs on the Node of the lockfile too.
      PATH: `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`,
      HOME: folder,
      WRANGLER_SEND_METRICS: 'false',
      CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    },
    command: [process.execPath, join(ROOT, 'node_modules/wrangler/bin/wrangler.js'), 'dev', ...files, ...where],
  });
  const ready = /Ready on (http:\/\/\S+)/;
  try {
    return { ...running, url: await running.until(() => ready.exec(running.stdout())?.[1]) };
  } catch (error) {
    await running.kill(); // nobody else knows of it
    throw error;
  }
}

/**
 * Waits until the objects answer this account in time. Those of a workerd that has just started may be too slow: a read
 * goes on without them then, and is not stored.
 */
export async function objectsAwake(url: string, token: string): Promise<void> {
  const answered = async () => {
    const { headers } = await call(url, { path: '/api/v2/subscription/', token });
    expect(headers['cache-status']).toMatch(/stored|hit/);
  };
  await vi.waitFor(answered, { timeout: 40_000, interval: 100 });
}

const COMPLAINT =
  /different request|cannot perform i\/o|uncaught|unhandled|never generate a response|hung|exception|segfault|kj\/|workerd\/.*: (?:error|warning)|\[(?:\S*m)?(?:ERROR|WARNING)/i;

/** What workerd, or wrangler, has said beside the lines of our log: of promises and I/O of other requests, of errors. */
export const complaintsIn = ({ stdout, stderr }: Pick<Running, 'stdout' | 'stderr'>): readonly string[] =>
  `${stdout()}\n${stderr()}`.split('\n').filter((line) => !line.includes('{"level":"') && COMPLAINT.test(line));
