import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './ports.ts';

export type Kind = 'haproxy' | 'nginx';

/** The program of that name, with the file that we ship and our ports in it. */
interface Program {
  readonly args: (file: string) => readonly string[];
  readonly config: (port: number, gateways: readonly string[]) => Promise<string> | string;
}

const shipped = (file: string) => readFileSync(join(import.meta.dirname, '../..', file), 'utf8');

const PROGRAMS: Readonly<Record<Kind, Program>> = {
  haproxy: {
    args: (file) => ['-db', '-f', file],
    async config(port, gateways) {
      const healthPort = await freePort();
      return shipped('deploy/compose/haproxy.cfg')
        .replace(/^resolvers .*\n( +.*\n)+/m, '')
        .replace('bind :8080', `bind 127.0.0.1:${port}`)
        .replace('127.0.0.1:8081', `127.0.0.1:${healthPort}`)
        .replace(/^( *)server-template \S+ \S+ \S+ (.*?) resolvers .*$/m, (_, indent: string, options: string) =>
          gateways.map((at, n) => `${indent}server gateway-${n} ${at} ${options}`).join('\n'),
        );
    },
  },
  nginx: {
    args: (file) => ['-e', 'stderr', '-p', dirname(file), '-c', file, '-g', 'daemon off; pid nginx.pid;'],
    config(port, gateways) {
      const places = [...gateways];
      return shipped('deploy/nginx/nginx.conf')
        .replace('http {', 'http {\n    access_log off;')
        .replace('listen 8080', `listen 127.0.0.1:${port}`)
        .replaceAll(/(^ *server )\d\S+/gm, (_, server: string) => `${server}${places.shift()}`);
    },
  },
};

const LOOK_MS = 20;

export const isInstalled = (kind: Kind): boolean => spawnSync(kind, ['-v']).error === undefined;

export interface Balancer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Before gateways at `host:port`, with changes of what we ship. Resolves where one of them is asked. */
export async function startBalancer(
  kind: Kind,
  gateways: readonly string[],
  changes: Readonly<Record<string, string>> = {},
): Promise<Balancer> {
  const { args, config } = PROGRAMS[kind];
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'portico-balancer-'));
  const file = join(dir, 'balancer.conf');
  const text = await config(port, gateways);
  writeFileSync(
    file,
    text.replace(/^ *(.*)$/gm, (line, words: string) => changes[words] ?? line),
  );
  const child = spawn(kind, args(file), { stdio: 'ignore' });
  const end = () => {
    child.kill('SIGTERM');
    rmSync(dir, { recursive: true, force: true });
  };
  process.once('exit', end);
  const url = `http://127.0.0.1:${port}`;
  const isThere = () => fetch(`${url}/readyz`).then(({ ok }) => ok, () => false); // prettier-ignore
  while (!(await isThere())) {
    if (child.exitCode !== null) throw new Error(`${kind} ended with status ${child.exitCode}`);
    await sleep(LOOK_MS);
  }
  return {
    url,
    async stop() {
      process.off('exit', end);
      const ended = once(child, 'exit');
      end();
      await ended;
    },
  };
}
