import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exposition } from '../metrics/exposition.ts';
import { emptyFolder, ROOT, run, type Running, urlIn } from '../runtime/node-gateway.ts';
import { call } from '../support/http.ts';
import { secret } from '../support/secrets.ts';
import { freePort } from '../support/ports.ts';
import type { Env } from '../support/world.ts';

const ENTRY = join(ROOT, 'src/entry/node.ts');

export interface Manned extends Running {
  readonly url: string;
  readonly port: number;
  readonly adminUrl: string;
  /** Of the processes that it has started. */
  readonly workers: () => readonly number[];
  /** Writes `.env`, which each worker reads when it starts. */
  readonly configure: (env: Env) => void;
}

const SECRETS = secret('of-the-workers-themselves');

interface Options {
  /** Arguments of Node's for all of its processes. */
  readonly before?: readonly string[];
  /** The program that runs it. */
  readonly node?: string;
  /** What is in `.env` at first. */
  readonly file?: Env;
}

export async function begin(env: Env, { before = [], file = {}, node = process.execPath }: Options = {}) {
  const cwd = emptyFolder();
  const configure = (variables: Env) =>
    writeFileSync(
      join(cwd, '.env'),
      Object.entries(variables)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    );
  const adminPort = String(await freePort());
  configure(file);
  const common: Env = { WORKERS: '2', SECRETS, PORT: '0', ADMIN_PORT: adminPort, RATE_LIMIT_PER_MINUTE: '0' };
  const command = [node, ...before, ENTRY] as const;
  const running = run({
    cwd,
    env: Object.fromEntries(Object.entries({ ...common, ...env }).filter(([name]) => !(name in file))),
    command,
  });
  const workers = () => childrenOf(running.pid);
  return { ...running, adminUrl: `http://127.0.0.1:${adminPort}`, workers, configure };
}

export async function start(env: Env, options?: Options): Promise<Manned> {
  const running = await begin(env, options);
  const url = await running.until(() => urlIn(running));
  return { ...running, url, port: Number(new URL(url).port) };
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  } catch {
    return []; // it has ended
  }
}

/** A process that has ended may still be listed, if nobody has asked how. */
export function isRunning(pid: number): boolean {
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

/** How many sockets a process has. */
export const socketsOf = (pid: number): number =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => linkOf(`/proc/${pid}/fd/${fd}`).startsWith('socket:')).length;

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // closed meanwhile
  }
}

/** What all of them have counted. */
export const scraped = async (adminUrl: string) => exposition((await call(adminUrl, { path: '/metrics' })).text);
