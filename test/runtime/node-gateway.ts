import { stripVTControlCharacters } from 'node:util';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { LOG_FOLDER } from '../support/gateway.ts';
import { freePort } from '../support/ports.ts';

export const ROOT = join(import.meta.dirname, '../..');
const ENTRY = join(ROOT, 'src/entry/node.ts');
const COMPILE_CACHE = join(ROOT, 'test-output/compile-cache');
/** On a machine that is busy with other things too. */
const START_MS = 40_000;

interface LogRecord extends Readonly<Record<string, unknown>> {
  readonly msg: string;
}

/** A process that knows no variable of ours but those that a test sets, and no `.env` of the checkout. */
export interface Running {
  readonly pid: number;
  /** What it has printed so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** The JSON lines of its standard output. */
  readonly records: () => readonly LogRecord[];
  readonly hasExited: () => boolean;
  /** Resolves with the exit status, or the name of the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
  /** One that a process passes on to those that it started goes to it alone, all others to all of them. */
  signal(name: NodeJS.Signals): void;
  /** Ends the process and all that it started. */
  kill(): Promise<void>;
  /** Resolves with what `find` finds in what was printed; rejects when the process ends first. */
  until<T>(find: () => T | undefined): Promise<T>;
}

interface Options {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly command?: readonly [file: string, ...args: string[]];
}

const PASSED_ON: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGQUIT'];

const spawned = new Set<Running>();

/** Ends what a test file has started. */
export async function killAll(): Promise<void> {
  const ended = [...spawned];
  await Promise.all(ended.map((one) => one.kill()));
  for (const one of ended) spawned.delete(one);
}

/** A folder without a `.env`. */
export const emptyFolder = (): string => mkdtempSync(join(tmpdir(), 'portico-'));

/** Runs the Node entry, or another command, and keeps what it prints where test/logs looks for secrets. */
export function run({ env = {}, cwd = emptyFolder(), command = [process.execPath, ENTRY] }: Options = {}): Running {
  if (process.env['NO_SERVERS']) throw new Error('this starts a process: name the file in vitest.config.ts');
  const [file, ...args] = command;
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(file, args, {
    cwd,
    env: { PATH, HOME, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a group of its own, so that a signal can be for all that it starts
  });
  const out = keep(child, 'stdout');
  const err = keep(child, 'stderr');
  const watchers = new Set<() => void>();
  const look = () => watchers.forEach((watcher) => watcher());
  let isOver = false;
  const exited = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (code, signal) => {
      isOver = true;
      resolve(code ?? signal);
      look();
    });
  });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', look);
  const signal = (name: NodeJS.Signals) => {
    if (isOver || child.pid === undefined) return;
    try {
      process.kill(PASSED_ON.includes(name) ? child.pid : -child.pid, name);
    } catch {
      // it has ended in the meantime
    }
  };
  const running: Running = {
    pid: child.pid ?? 0,
    stdout: () => out.join(''),
    stderr: () => err.join(''),
    records: () => [out, err].flatMap((parts) => recordsIn(parts.join(''))),
    hasExited: () => isOver,
    exited,
    signal,
    async kill() {
      signal('SIGKILL');
      await exited;
    },
    until: (find) =>
      new Promise((resolve, reject) => {
        const settle = (end: () => void) => {
          watchers.delete(watcher);
          clearTimeout(timer);
          end();
        };
        const complain = (what: string) =>
          settle(() => reject(new Error(`${what}; printed: ${out.join('')}${err.join('')}`)));
        const watcher = () => {
          const found = find();
          if (found !== undefined) settle(() => resolve(found));
          else if (isOver) complain('it ended first');
        };
        const timer = setTimeout(() => complain('it never came'), START_MS);
        watchers.add(watcher);
        watcher();
      }),
  };
  spawned.add(running);
  return running;
}

type Child = ChildProcessByStdio<null, Readable, Readable>;

function keep(child: Child, name: 'stdout' | 'stderr'): string[] {
  mkdirSync(LOG_FOLDER, { recursive: true });
  const file = join(LOG_FOLDER, `${process.pid}-child-${child.pid}.${name}.log`);
  const kept: string[] = [];
  child[name].setEncoding('utf8').on('data', (text: string) => {
    kept.push(text);
    appendFileSync(file, text);
  });
  return kept;
}

const recordsIn = (text: string): LogRecord[] =>
  text
    .split('\n')
    .slice(0, -1) // the last line may still be growing
    .map((line) => stripVTControlCharacters(line).replace(OF_WRANGLER, ''))
    .filter((line) => line.startsWith('{') && line.endsWith('}'))
    .map((line) => JSON.parse(line) as LogRecord);

/** What `wrangler dev` puts before a line of `console.error`. */
const OF_WRANGLER = /^✘ \[ERROR\] (?=\{)/;

export interface NodeGateway extends Running {
  readonly url: string;
  readonly port: number;
  /** Of the admin listener; nothing listens there where `ADMIN_PORT` is `0`. */
  readonly adminUrl: string;
}

/** The gateway as an operator runs it, on free ports; with another command before it, if one is given. */
export async function startNode(
  env: Readonly<Record<string, string>>,
  before: readonly string[] = [],
  entry = ENTRY,
): Promise<NodeGateway> {
  const adminPort = env['ADMIN_PORT'] ?? String(await freePort());
  const [file, ...args] = [...before, process.execPath, entry];
  const running = run({ env: { PORT: '0', ...env, ADMIN_PORT: adminPort }, command: [file, ...args] });
  const url = await running.until(() => urlIn(running));
  return { ...running, url, port: Number(new URL(url).port), adminUrl: `http://127.0.0.1:${adminPort}` };
}

export function urlIn({ records }: Pick<Running, 'records'>): string | undefined {
  const url = records().find(({ msg }) => msg === 'listening')?.['url'];
  return typeof url === 'string' ? url : undefined;
}
