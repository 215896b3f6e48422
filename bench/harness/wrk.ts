import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { LOAD_CORE } from './servers.ts';

/** Requests of one kind. `{account}` in a header is an account's number, `{key}` one that is never used again. */
export interface Load {
  readonly path: string;
  readonly method?: 'GET' | 'POST';
  readonly body?: string;
  /** Besides the credential; an empty one is left out. */
  readonly headers?: Readonly<Record<string, string>>;
  /** That take turns; 1 unless given. */
  readonly accounts?: number;
  readonly connections?: number;
}

export interface WrkResult {
  readonly answers: number;
  readonly us: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Neither 2xx nor 3xx. */
  readonly badStatus: number;
  /** Connections that failed, and answers that did not come in time. */
  readonly broken: number;
}

interface Run {
  readonly url: string;
  readonly load: Load;
  readonly seconds: number;
}

const SCRIPT = new URL('load.lua', import.meta.url).pathname;
const CONNECTIONS = 50;
const RUN_APART = 10_037_421; // more than a run can send, and of 100,000 accounts each run begins at another one
const MARGIN_MS = 20_000;

let runs = 0;
const run = promisify(execFile);

export const isWrkInstalled = () => spawnSync('wrk', ['-v']).error === undefined;

/** wrk for whole seconds, on the core of the load. */
export async function wrk({ url, load, seconds }: Run): Promise<WrkResult> {
  const { path, method = 'GET', body = '', accounts = 1, connections = CONNECTIONS } = load;
  const headers = Object.entries(headersOf(load)).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const size = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '5s'];
  const command = ['-c', String(LOAD_CORE), 'wrk', ...size, ...headers, '-s', SCRIPT, url + path];
  const timeout = seconds * 1_000 + MARGIN_MS;
  const first = ++runs * RUN_APART; // where no count of accounts and keys was before
  const told = ['--', String(accounts), String(first), method, body];
  const { stdout } = await run('taskset', [...command, ...told], { timeout });
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as WrkResult;
}

/** With the account's number in its place where there is only one. */
export function headersOf({ headers = {}, accounts = 1, body }: Load): Readonly<Record<string, string>> {
  const all = {
    Authorization: `Token bench-key-${accounts > 1 ? '{account}' : '0'}`,
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
    ...headers,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
}
