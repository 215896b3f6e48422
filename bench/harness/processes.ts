import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { freePort } from '../../scripts/free-port.ts';

export interface Running {
  readonly url: string;
  readonly pid: number;
  /** Sends a message and gives back what comes for it, where the process answers messages. One at a time. */
  ask(message: object): Promise<unknown>;
  signal(name: NodeJS.Signals): void;
  stop(): Promise<void>;
}

interface Start {
  readonly script: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Options of Node itself. */
  readonly node?: readonly string[];
}

/** Of these processes only: with NODE_ENV=production none that is public is taken. */
export const SECRET = randomBytes(32).toString('base64');

/** For `--import` in front of a gateway: it ends with the process that started it. */
const PRELOAD = new URL('preload.ts', import.meta.url).href;

const atEnd: (() => void)[] = [];
process.once('exit', () => {
  for (const act of atEnd) act();
});

/** What the bench leaves to be ended when it ends itself. */
export const atExit = (act: () => void): void => void atEnd.push(act);

/** Starts a script; it prints its URL in its first line that has one. */
export async function start({ script, env = {}, node = [] }: Start): Promise<Running> {
  const options = {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  } satisfies SpawnOptions;
  const child = spawn(process.execPath, [...node, script], options);
  const url = await firstUrl(child);
  child.stdout?.resume(); // log lines are made, as in service, and read by nobody
  return {
    url,
    pid: child.pid ?? Number.NaN,
    ask: (message) => ask(child, message),
    signal: (name) => void child.kill(name),
    stop: () => kill(child),
  };
}

/** A gateway from its source, on free ports; `admin` is where its metrics are. */
export async function startGateway({ env, node = [], ...others }: Omit<Start, 'script'>) {
  const adminPort = String(await freePort());
  const running = await start({
    ...others,
    script: 'src/entry/node.ts',
    node: [...node, '--import', PRELOAD],
    env: { PORT: '0', ADMIN_PORT: adminPort, ...env },
  });
  return { ...running, admin: `http://127.0.0.1:${adminPort}` };
}

const ASK_MS = 60_000;

async function ask(child: ChildProcess, message: object): Promise<unknown> {
  const answered = once(child, 'message', { signal: AbortSignal.timeout(ASK_MS) });
  child.send(message);
  const [answer] = (await answered) as [unknown];
  return answer;
}

async function firstUrl(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error('no output to read');
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    if (url !== undefined) return url;
  }
  throw new Error('the process ended before it printed its URL');
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
