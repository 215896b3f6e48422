import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../core/logger.ts';
import type { Exit, WorkerProcess } from './process.ts';

/** The pause before a worker is replaced that has ended by itself, and what it grows to while they end at once. */
const PAUSE_MS = 100;
const MOST_PAUSE_MS = 10_000;
/** One that has served for so long has not ended at once. */
const LIVED_MS = 1_000;

/** So many that do not begin to serve, one after the other, end the process. */
const MOST_FAILED = 5;

/** Beyond the time that a worker may take to end. */
const KILL_MS = 3_000;

interface SupervisorOptions {
  readonly fork: () => WorkerProcess;
  readonly logger: Logger;
  /** One has ended; `isDeath`: which nobody wanted. */
  readonly onExit: (worker: WorkerProcess, isDeath: boolean) => void;
  /** They do not start any more. */
  readonly onHopeless: (exit: Exit) => void;
}

/** Keeps as many workers serving as there are to be. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #workers = new Set<WorkerProcess>();
  #count = 0;
  #isStopping = false;
  #renewing: Promise<void> | undefined;
  #isAskedAgain = false;
  /** How many in a row ended at once, and how many of them before they served. */
  #brief = 0;
  #failed = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  get workers(): ReadonlySet<WorkerProcess> {
    return this.#workers;
  }

  get isServing(): boolean {
    return !this.#isStopping && [...this.#workers].some(({ takesConnections }) => takesConnections);
  }

  /** The first one alone, so that what is wrong is said once. Resolves with its exit where one does not start. */
  async start(count: number): Promise<Exit | undefined> {
    this.#count = count;
    for (const many of [1, count - 1]) {
      const begun = Array.from({ length: many }, () => this.#fork());
      const started = await Promise.all(begun.map((worker) => worker.started));
      const failed = begun[started.indexOf(undefined)];
      if (failed) return failed.exited;
    }
    for (const worker of this.#workers) this.#watch(worker);
    return undefined;
  }

  /** Replaces all, one by one, by workers that read their configuration anew. Where one does not start, the others stay. */
  async renew(): Promise<void> {
    this.#isAskedAgain = this.#renewing !== undefined;
    await (this.#renewing ??= this.#renewAll());
  }

  /** All finish what they have, and end. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(Array.from(this.#workers, (worker) => this.#end(worker, false)));
  }

  #fork(): WorkerProcess {
    const worker = this.#options.fork();
    this.#workers.add(worker);
    void worker.exited.then(() => {
      this.#workers.delete(worker);
      this.#options.onExit(worker, !worker.isLeaving && !this.#isStopping);
    });
    return worker;
  }

  async #end(worker: WorkerProcess, isReplaced: boolean): Promise<void> {
    worker.leave(isReplaced);
    const ended = new AbortController();
    const late = sleep((worker.serving?.endMs ?? 0) + KILL_MS, undefined, { signal: ended.signal });
    late.then(
      () => worker.kill(),
      () => undefined,
    );
    await worker.exited;
    ended.abort();
  }

  async #renewAll(): Promise<void> {
    do {
      this.#isAskedAgain = false;
      await this.#renewOnce();
    } while (this.#isAskedAgain && !this.#isStopping);
    this.#renewing = undefined;
    this.#fill();
  }

  async #renewOnce(): Promise<void> {
    const { logger } = this.#options;
    const old = [...this.#workers];
    let begun = 0;
    do {
      if (this.#isStopping) return;
      const worker = this.#fork();
      const started = await worker.started;
      if (!started)
        return logger.error({}, 'the new configuration does not start: the other workers go on as they are');
      this.#count = started.workers;
      this.#watch(worker);
      const replaced = old.shift();
      if (replaced) await this.#end(replaced, true);
    } while (++begun < this.#count);
    await Promise.all(old.map((worker) => this.#end(worker, true)));
    logger.info({ count: this.#count }, 'all workers are new');
  }

  /** Starts those that are missing. */
  #fill(): void {
    while (!this.#isStopping && this.#workers.size < this.#count) this.#watch(this.#fork());
  }

  /** Puts another one in its place, should it end by itself. */
  #watch(worker: WorkerProcess): void {
    void worker.exited.then((exit) => {
      if (!this.#isStopping && !worker.isLeaving) void this.#replace(worker, exit);
    });
  }

  async #replace(worker: WorkerProcess, { code, signal }: Exit): Promise<void> {
    const { logger, onHopeless } = this.#options;
    const lived = worker.serving ? performance.now() - worker.servingSince : 0;
    this.#brief = lived < LIVED_MS ? this.#brief + 1 : 0;
    this.#failed = worker.serving || signal !== null ? 0 : this.#failed + 1;
    logger.error(signal === null ? { errno: `status ${code}` } : { signal }, 'a worker has ended by itself');
    if (this.#failed >= MOST_FAILED) return onHopeless({ code, signal });
    await sleep(Math.min(MOST_PAUSE_MS, PAUSE_MS * 2 ** this.#brief));
    if (!this.#renewing) this.#fill();
  }
}
