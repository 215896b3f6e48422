import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { atExit } from './processes.ts';
import { freePort } from '../../scripts/free-port.ts';

const SERVER_CORE = 0;
/** Of the load, the upstream, Redis and the bench itself. */
export const LOAD_CORE = 1;

export interface Server {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

interface Wanted {
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly core?: number;
  /** A free one unless given; the process learns it as `PORT`. */
  readonly port?: number;
}

const LISTENS_WITHIN_MS = 20_000;
const LOOK_MS = 10;

/** Whatever the bench and its servers write; gone with the bench. */
export const folder = mkdtempSync(join(tmpdir(), 'portico-bench-'));

const running = new Set<ChildProcess>();
let started = 0;
atExit(() => {
  running.forEach(kill);
  rmSync(folder, { recursive: true, force: true });
});

const project = (path: string) => new URL(`../../${path}`, import.meta.url).pathname;

/** The command that runs a file of the project. */
export const node = (path: string): readonly string[] => [process.execPath, project(path)];

/** A process on a core of its own, without the variables of this one, once it listens. Its log goes nowhere. */
export async function start({ command, env = {}, core = SERVER_CORE, port }: Wanted): Promise<Server> {
  const listensOn = port ?? (await freePort());
  const errors = join(folder, `${++started}.log`);
  const child = spawn('taskset', ['-c', String(core), ...command], {
    cwd: folder, // where no .env is
    env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...env, PORT: String(listensOn) },
    stdio: ['ignore', 'ignore', openSync(errors, 'w')],
    detached: true, // a group, to be ended as one
  });
  running.add(child);
  child.once('exit', (code) => {
    const isExpected = !running.delete(child);
    if (!isExpected) console.error(`${command.join(' ')} ended with ${code}: ${readFileSync(errors, 'utf8')}`);
  });
  const url = `http://127.0.0.1:${listensOn}`;
  const giveUpAt = performance.now() + LISTENS_WITHIN_MS;
  while (!(await listens(url))) {
    if (performance.now() > giveUpAt) throw new Error(`${command.join(' ')} does not listen`);
    await sleep(LOOK_MS);
  }
  return { url, pid: child.pid ?? Number.NaN, stop: () => stop(child) };
}

export async function stopAll(): Promise<void> {
  await Promise.all([...running].map(stop));
}

async function listens(url: string): Promise<boolean> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' });
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}

async function stop(child: ChildProcess): Promise<void> {
  if (!running.delete(child)) return;
  const ended = once(child, 'exit');
  kill(child);
  await ended;
}

function kill({ pid = Number.NaN }: ChildProcess): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended by itself
  }
}
