import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freePort } from '../../../scripts/free-port.ts';
import { atExit } from '../support/processes.ts';
import { Instance, until, type Variables } from './gateways.ts';

/** What clients talk to, and the gateways behind it. */
export interface Front {
  readonly url: string;
  /** Of one gateway after the other; resolves where the new one is asked. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export type Kind = 'haproxy' | 'nginx';

const ROOT = join(import.meta.dirname, '../../..');
const shipped = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** Of the compose set. */
const [, DELAY_MS = '3000'] = /SHUTDOWN_DELAY_MS: .*?(\d+)/.exec(shipped('compose.yaml')) ?? [];

/** The file that we ship, with our ports in it. */
interface Proxy {
  readonly command: (file: string) => readonly [string, ...string[]];
  readonly config: (port: number, gateways: readonly string[]) => Promise<string> | string;
}

const HAPROXY: Proxy = {
  command: (file) => ['haproxy', '-db', '-f', file],
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
};

const NGINX: Proxy = {
  command: (file) => ['nginx', '-e', 'stderr', '-p', dirname(file), '-c', file, '-g', 'daemon off; pid nginx.pid;'],
  config(port, gateways) {
    const places = [...gateways];
    return shipped('deploy/nginx/nginx.conf')
      .replace('http {', 'http {\n    access_log off;')
      .replace('listen 8080', `listen 127.0.0.1:${port}`)
      .replaceAll(/(^ *server )\d\S+/gm, (_, server: string) => `${server}${places.shift()}`);
  },
};

async function startProxy({ command, config }: Proxy, gateways: readonly string[]) {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'portico-rolling-'));
  const file = join(dir, 'front.conf');
  writeFileSync(file, await config(port, gateways));
  const [program, ...args] = command(file);
  const child = spawn(program, args, { stdio: 'ignore' });
  atExit(() => {
    child.kill('SIGTERM');
    rmSync(dir, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  await until(() => fetch(`${url}/readyz`).then(({ ok }) => ok, () => false), 'the proxy has a gateway'); // prettier-ignore
  return {
    url,
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function behind(kind: Proxy, env: Variables): Promise<Front> {
  const common = { SHUTDOWN_DELAY_MS: DELAY_MS, ...env };
  const instances = await Promise.all([Instance.start(common), Instance.start(common)]);
  const gateways = instances.map(({ port }) => `127.0.0.1:${port}`);
  const proxy = await startProxy(kind, gateways);
  let turn = 0;
  return {
    url: proxy.url,
    restart: async () => instances[turn++ % instances.length]?.restart(),
    async stop() {
      await proxy.stop();
      await Promise.all(instances.map((one) => one.stop()));
    },
  };
}

export const startFront: Readonly<Record<Kind, (env: Variables) => Promise<Front>>> = {
  haproxy: (env) => behind(HAPROXY, env),
  nginx: (env) => behind(NGINX, env),
};
