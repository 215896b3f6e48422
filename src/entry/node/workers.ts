import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type Assignment, VARIABLE, ZERO } from './assignment.ts';
import { filesRead } from './files.ts';
import { type FromWorker, ignored, NotesOfWorkers, type ToWorker } from './ipc.ts';
import { type Measured, measuredOfProcess, pageOf, sumOf } from './metrics/index.ts';
import { listenForOperators } from './listen.ts';
import type { OpenedOnNode } from './runtime.ts';
import { type Served, urlAt } from './server/serve.ts';
import { onSignal } from './signals.ts';
import { exitBadly, orExit } from './variables.ts';

interface Worker {
  readonly child: ChildProcess;
  /** `reason`: its status, or the signal that has killed it. */
  readonly ended: Promise<{ readonly status: number; readonly reason: string }>;
  isReady: boolean;
  /** What it has measured, when it was last asked. */
  measured: Measured;
  onMeasured: () => void;
}

/** The pauses between the death of a worker and the start of another one. */
const FIRST_PAUSE_MS = 100;
const MOST_PAUSE_MS = 10_000;
/** After a life that long the pauses begin anew. */
const LONG_LIFE_MS = 60_000;
const MEASURE_MS = 1_000;
/** A worker that has not ended by then hangs. */
const KILL_MS = 5_000;

const ENDED = 'a worker has ended, and another one takes its place';
const NOT_STARTED = 'a worker could not start, so none is left';
const ONE_FILE = '1, since there is no file that workers could be started with';

/**
 * Runs the main module of this process once more in each of `WORKERS` processes, which all listen at `HOST` and `PORT`: the system
 * spreads the connections. This process listens for operators. Without `STORE_URL` it keeps what the workers share.
 */
export async function startWorkers(opened: OpenedOnNode, atEnd?: () => Promise<void>): Promise<Served> {
  const closed = opened.close(); // workers alone call the upstream and the shared store
  const { config } = opened.deps;
  const workers = new Workers(opened);
  opened.state.isReady = () => workers.areReady;
  const admin = await listenForOperators(opened, () => workers.scrape(), []);
  const port = await orExit('PORT', config, freePort(config));
  await workers.start(port);
  onSignal(async (signal) => {
    if (workers.areEnding) return;
    opened.logger.info({ signal }, 'stopping');
    await workers.end();
    await Promise.all([admin?.drain(0), atEnd?.(), closed]);
    await opened.logger.end();
    process.exit(0);
  });
  const url = urlAt(config.host, port);
  opened.logger.info({ url }, 'listening');
  return { url, adminUrl: admin?.url };
}

/** The port, if it is free: workers could listen beside another gateway's, and nobody would be told. 0 takes any. */
async function freePort({ host, port }: { readonly host: string; readonly port: number }): Promise<number> {
  const server = createServer((early) => early.destroy());
  await once(server.listen({ host, port }), 'listening');
  const { port: free } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return free;
}

class Workers {
  areEnding = false;
  readonly #opened: OpenedOnNode;
  readonly #notes: NotesOfWorkers;
  readonly #running = new Set<Worker>();
  readonly #secret = randomBytes(32).toString('base64url');
  /** What workers that have ended had measured: sums of counts never go down. */
  #ended: Measured[] = [];
  #scraping: Promise<unknown> | undefined;
  #haveStarted = false;

  constructor(opened: OpenedOnNode) {
    this.#opened = opened;
    this.#notes = new NotesOfWorkers(() => opened.deps.clock.now());
  }

  get areReady(): boolean {
    const ready = [...this.#running].filter((one) => one.isReady);
    return !this.areEnding && ready.length === this.#opened.settings.workers;
  }

  /** Resolves when all take requests. Where one cannot, the process ends with its status. */
  async start(port: number): Promise<void> {
    const all = Array.from({ length: this.#opened.settings.workers });
    await Promise.all(all.map(() => new Promise<void>((onReady) => void this.#keep(port, onReady))));
    this.#haveStarted = true;
  }

  /** One worker after the other. */
  async #keep(port: number, onReady: () => void): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (!this.areEnding) {
      const startedAt = performance.now();
      const { status, reason } = await this.#run(port, onReady).ended;
      if (this.areEnding) return;
      if (!this.#haveStarted) {
        this.#opened.logger.error({ reason }, NOT_STARTED);
        process.exit(status);
      }
      if (performance.now() - startedAt > LONG_LIFE_MS) pauseMs = FIRST_PAUSE_MS;
      this.#opened.logger.error({ reason }, ENDED);
      await delay(pauseMs);
      pauseMs = Math.min(2 * pauseMs, MOST_PAUSE_MS);
    }
  }

  #run(port: number, onReady: () => void): Worker {
    const child = this.#fork(port);
    const { promise: ended, resolve } = Promise.withResolvers<Awaited<Worker['ended']>>();
    const worker: Worker = { child, ended, isReady: false, measured: [], onMeasured: ignored };
    this.#running.add(worker);
    child.on('message', ({ questions, isReady, measured }: FromWorker) => {
      if (questions) tell(child, { answers: this.#notes.answers(questions) });
      if (isReady !== undefined) worker.isReady = isReady;
      if (isReady) onReady();
      if (measured) worker.measured = measured;
      if (measured) worker.onMeasured();
    });
    const end = (status: number, reason: string) => {
      this.#running.delete(worker);
      this.#ended.push(worker.measured.filter(({ type }) => String(type) !== 'gauge'));
      worker.onMeasured();
      resolve({ status, reason });
    };
    child.on('exit', (code, signal) => end(code ?? 1, signal ?? `status ${code}`));
    child.on('error', ({ code }: NodeJS.ErrnoException) => child.pid === undefined && end(1, String(code)));
    return worker;
  }

  /** Starts a worker, which is told by a pipe: it has secrets, and others may see an environment. */
  #fork(port: number): ChildProcess {
    const [, file, ...words] = process.argv;
    if (file === undefined) return exitBadly([{ variable: 'WORKERS', expected: ONE_FILE }]);
    const child = fork(file, words, {
      env: { ...process.env, [VARIABLE]: String(DESCRIPTOR) },
      stdio: ['inherit', 'inherit', 'inherit', 'ipc', 'pipe'],
    });
    const { trial } = this.#opened;
    const told: Assignment = { port, secret: this.#secret, zero: ZERO, files: filesRead, trial };
    const pipe = child.stdio?.[DESCRIPTOR]; // without descriptors there is none
    if (pipe && 'end' in pipe) pipe.on('error', ignored).end(JSON.stringify(told));
    return child;
  }

  /** What is measured in all processes, added up. A worker that does not answer in time counts as it did before. */
  async scrape() {
    this.#scraping ??= Promise.all([...this.#running].map(measure)).finally(() => (this.#scraping = undefined));
    await this.#scraping;
    if (this.#ended.length > 1) this.#ended = [await sumOf(this.#ended).getMetricsAsJSON()];
    const all = [...[...this.#running].map(({ measured }) => measured), ...this.#ended, await measuredOfProcess()];
    return pageOf(sumOf(all));
  }

  /** Resolves when all have finished what they had. */
  async end(): Promise<void> {
    this.areEnding = true;
    const { settings, deps } = this.#opened;
    const kill = (signal: NodeJS.Signals) => [...this.#running].forEach(({ child }) => child.kill(signal));
    setTimeout(kill, settings.shutdownDelayMs + deps.config.shutdownGraceMs + KILL_MS, 'SIGKILL').unref();
    const ends = [...this.#running].map(({ ended }) => ended);
    kill('SIGTERM');
    await Promise.all(ends);
  }
}

const DESCRIPTOR = 4;

/** What cannot be sent was for a process that ends. */
const tell = (child: ChildProcess, message: ToWorker) => void child.send(message, ignored);

/** Resolves when the worker has said what it measures, or has had the time to. */
const measure = (worker: Worker): Promise<void> =>
  new Promise((resolve) => {
    worker.onMeasured = resolve;
    if (worker.isReady) tell(worker.child, { measure: true });
    else resolve();
    setTimeout(resolve, MEASURE_MS).unref();
  });
