import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

export interface Running {
  readonly url: string;
  stop(): Promise<void>;
}

interface Start {
  readonly script: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Processor that the process is pinned to. */
  readonly core: number;
}

/** Starts a script on a core of its own; it prints its URL in its first line that has one. */
export async function start({ script, args = [], env = {}, core }: Start): Promise<Running> {
  const child = spawn('taskset', ['-c', String(core), process.execPath, script, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const url = await firstUrl(child);
  child.stdout?.resume(); // log lines are made, as in service, and read by nobody
  return { url, stop: () => stop(child) };
}

async function firstUrl(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error('no output to read');
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    if (url !== undefined) return url;
  }
  throw new Error('the process ended before it printed its URL');
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

export interface Load {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  readonly core: number;
}

export interface LoadResult {
  /** Answers a second. */
  readonly rate: number;
  readonly p99Ms: number;
  readonly failed: number;
}

const run = promisify(execFile);

/** autocannon in a process of its own, for a bounded time, against loopback only. */
export async function load({ url, connections, seconds, core }: Load): Promise<LoadResult> {
  const options = ['-j', '-c', String(connections), '-d', String(seconds), '-H', 'Authorization=Token bench-key', url];
  const binary = new URL(import.meta.resolve('autocannon/autocannon.js')).pathname;
  const { stdout } = await run('taskset', ['-c', String(core), process.execPath, binary, ...options], {
    maxBuffer: 1 << 24,
  });
  const result = JSON.parse(stdout) as {
    requests: { average: number };
    latency: { p99: number };
    non2xx: number;
    errors: number;
  };
  return { rate: result.requests.average, p99Ms: result.latency.p99, failed: result.non2xx + result.errors };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
