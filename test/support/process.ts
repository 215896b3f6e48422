import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { onTestFinished, TestRunner } from 'vitest';
import { killAtExit } from './at-exit.ts';
import { LOG_FOLDER } from './gateway.ts';

export const ROOT = join(import.meta.dirname, '../..');
export const ENTRY = join(ROOT, 'src/entry/node.ts');
const COMPILE_CACHE = join(ROOT, 'test-output/compile-cache');

type Env = Readonly<Record<string, string>>;

interface LogRecord extends Readonly<Record<string, unknown>> {
  readonly msg: string;
}

/** A process that knows no variable of ours but those that a test sets. */
interface Running {
  readonly pid: number;
  /** What it has printed so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** The JSON lines of its standard output. */
  readonly records: () => readonly LogRecord[];
  /** Resolves with the exit status, or the name of the signal that ended it. */
  readonly exited: Promise<number | string>;
  /** Reads its standard output no more, until `goOn`. */
  readonly stall: () => void;
  readonly goOn: () => void;
  signal(name: NodeJS.Signals): void;
  /** Resolves with what `find` finds in what was printed, however late; rejects when the process ends first. */
  until<T>(find: () => T | undefined): Promise<T>;
  /** The same for the first line of the log that `is`. */
  line(is: (record: LogRecord) => boolean): Promise<LogRecord>;
}

interface Options {
  readonly cwd?: string;
  readonly command?: readonly [file: string, ...args: string[]];
  readonly atEnd?: (end: End) => void;
}

type End = () => Promise<void>;

/** Of what hooks of a file have started. */
const left = new Set<End>();

/** With the test that has started it; what a hook has started `killAll` ends. */
const byDefault = (end: End): void => (TestRunner.getCurrentTest() ? onTestFinished(end) : void left.add(end));

export async function killAll(): Promise<void> {
  const ends = [...left];
  left.clear();
  await Promise.all(ends.map((end) => end()));
}

/** A folder with these files, and without a `.env` unless it is one of them. */
export function folderWith(files: Readonly<Record<string, string | Uint8Array>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'portico-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

/** Runs the Node entry, or another command. What it prints is kept for those who look for secrets in all logs. */
export function run(env: Env = {}, options: Options = {}): Running {
  const { cwd = folderWith(), command = [process.execPath, ENTRY], atEnd = byDefault } = options;
  const [file, ...args] = command;
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(file, args, {
    cwd,
    env: { PATH, HOME, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a group of its own, so that the kill is for all that it starts
  });
  const out = keep(child, 'stdout');
  const err = keep(child, 'stderr');
  let isOver = false;
  const watchers = new Set<() => void>();
  const look = () => watchers.forEach((watcher) => watcher());
  const exited = once(child, 'close').then(([code, signal]) => {
    isOver = true;
    look();
    return (code ?? signal) as number | string;
  });
  const { pid = 0 } = child;
  const send = (to: number, name: NodeJS.Signals) => {
    try {
      if (!isOver) process.kill(to, name);
    } catch {
      // it has ended in the meantime
    }
  };
  const until = <T>(find: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const watcher = () => {
        const found = find();
        if (found === undefined && !isOver) return;
        watchers.delete(watcher);
        if (found !== undefined) resolve(found);
        else reject(new Error(`it ended first; printed: ${out.join('')}${err.join('')}`));
      };
      watchers.add(watcher);
      watcher();
    });
  const forget = killAtExit(() => send(-pid, 'SIGKILL'));
  atEnd(async () => {
    send(-pid, 'SIGKILL');
    forget();
    await exited;
  });
  const records: LogRecord[] = [];
  let rest = '';
  child.stdout.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (/^\{.*\}$/.test(line)) records.push(JSON.parse(line) as LogRecord);
  });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', look);
  return {
    pid,
    stdout: () => out.join(''),
    stderr: () => err.join(''),
    records: () => records,
    exited,
    stall: () => void child.stdout.pause(),
    goOn: () => void child.stdout.resume(),
    signal: (name) => send(pid, name),
    until,
    line: (is) => until(() => records.find(is)),
  };
}

export interface NodeProcess extends Running {
  readonly url: string;
  readonly port: number;
  /** Of the admin listener; nothing listens there where `ADMIN_PORT` is `0`. */
  readonly adminUrl: string;
}

/** The gateway as an operator runs it. It prints where it listens; the admin port is tried until a free one is met. */
export async function startNode(env: Env, options: Options = {}): Promise<NodeProcess> {
  const adminPort = env['ADMIN_PORT'] ?? String(await freePort());
  const running = run({ PORT: '0', ...env, ADMIN_PORT: adminPort }, options);
  const met = await running.until(
    () => urlIn(running.records()) ?? /^ADMIN_PORT: .* in use$/m.exec(running.stderr())?.[0],
  );
  if (!met.startsWith('http')) return startNode(env, options);
  return { ...running, url: met, port: Number(new URL(met).port), adminUrl: `http://127.0.0.1:${adminPort}` };
}

/** Of this moment: somebody else may take it. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  await once(server.close(), 'close');
  return port;
}

export function urlIn(records: readonly LogRecord[]): string | undefined {
  return records.find(({ msg }) => msg === 'listening')?.['url'] as string | undefined;
}

function keep(child: ChildProcessByStdio<null, Readable, Readable>, name: 'stdout' | 'stderr'): string[] {
  mkdirSync(LOG_FOLDER, { recursive: true });
  const file = join(LOG_FOLDER, `${process.pid}-child-${child.pid}.${name}.log`);
  const kept: string[] = [];
  child[name].setEncoding('utf8').on('data', (text: string) => {
    kept.push(text);
    appendFileSync(file, text);
  });
  return kept;
}
