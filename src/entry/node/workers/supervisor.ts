import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../core/logger.ts';
import type { Exit, WorkerProcess } from './process.ts';

/** The pause before a worker is replaced that has ended by itself, and what it grows to while they end at once. */
const PAUSE_MS = 100;
const MOST_PAUSE_MS = 10_000;
/** One that has served for so long has not ended at once. */
const LIVED_MS = 1_000;

/** So many that do not begin to serve, one after the other while no other serves, end the process. */
const MOST_FAILED = 5;
/** After so many that do not begin to serve the old ones are not replaced any further. */
const MOST_TRIES = 3;

/** Beyond the time that a worker may take to end. */
const KILL_MS = 3_000;

interface SupervisorOptions<Settings> {
  /** Starts one with these settings. */
  readonly fork: (settings: Settings) => WorkerProcess;
  readonly logger: Logger;
  /** One has ended; `isDeath`: it served, and nobody wanted its end. */
  readonly onExit: (worker: WorkerProcess, isDeath: boolean) => void;
  /** They do not start any more. */
  readonly onHopeless: (exit: Exit) => void;
}

/** Keeps as many workers serving as there are to be. One that is replaced since it died gets the settings that are in force. */
export class Supervisor<Settings> {
  readonly #options: SupervisorOptions<Settings>;
  /** With the settings that each was started with. */
  readonly #workers = new Map<WorkerProcess, Settings>();
  #inForce: Settings;
  #count = 0;
  #isStopping = false;
  #renewing: Promise<void> | undefined;
  /** How many in a row ended at once, and how many of them before they served. */
  #brief = 0;
  #failed = 0;

  constructor(inForce: Settings, options: SupervisorOptions<Settings>) {
    this.#inForce = inForce;
    this.#options = options;
  }

  get workers(): readonly WorkerProcess[] {
    return [...this.#workers.keys()];
  }

  get isServing(): boolean {
    return !this.#isStopping && this.workers.some(({ takesConnections }) => takesConnections);
  }

  /** Whose end is not wanted. */
  get #staying(): readonly WorkerProcess[] {
    return this.workers.filter(({ isLeaving }) => !isLeaving);
  }

  /** The first one alone, so that what is wrong is said once. Resolves with its exit where it does not start. */
  async start(count: number): Promise<Exit | undefined> {
    const first = this.#fork(this.#inForce);
    if (!(await first.started)) return first.exited;
    this.#count = count;
    this.#watch(first);
    this.#fill();
    await Promise.all(this.workers.map(({ started }) => started));
    return undefined;
  }

  /** Replaces all, one by one, by workers with these settings. Where the first of them does not start, nothing changes. */
  async renew(settings: Settings): Promise<void> {
    const before = this.#renewing;
    const renewing = (this.#renewing = Promise.resolve(before).then(() => this.#renewOnce(settings)));
    await renewing;
    if (this.#renewing === renewing) this.#renewing = undefined;
  }

  /** All finish what they have, and end. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.workers.map((worker) => this.#end(worker, false)));
  }

  /** All end at once. */
  kill(): void {
    this.#isStopping = true;
    for (const worker of this.workers) worker.kill();
  }

  #fork(settings: Settings): WorkerProcess {
    const worker = this.#options.fork(settings);
    this.#workers.set(worker, settings);
    void worker.exited.then(() => {
      this.#workers.delete(worker);
      this.#options.onExit(worker, worker.serving !== undefined && !worker.isLeaving && !this.#isStopping);
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

  async #renewOnce(settings: Settings): Promise<void> {
    if (this.#isStopping) return;
    const { logger } = this.#options;
    const first = this.#fork(settings);
    const started = await first.started;
    if (this.#isStopping) return;
    if (!started) return logger.error(wordsOf(await first.exited), NOT_STARTED);
    this.#watch(first);
    [this.#inForce, this.#count] = [settings, started.workers];
    if (await this.#replaceOld()) logger.info({ count: this.#count, url: started.url }, 'all workers are new');
    this.#fill();
  }

  /** Never are there fewer than there are to be. Whether all are new. */
  async #replaceOld(): Promise<boolean> {
    for (let failed = 0; !this.#isStopping;) {
      const staying = this.#staying;
      const old = staying.filter((worker) => this.#workers.get(worker) !== this.#inForce);
      const fresh = staying.length - old.length;
      if (fresh >= this.#count && old.length === 0) return true;
      if (old[0] && (staying.length > this.#count || fresh >= this.#count)) await this.#end(old[0], true);
      else if (await this.#startOne()) failed = 0;
      else if (++failed === MOST_TRIES) return this.#sayHowMany(fresh);
    }
    return false;
  }

  async #startOne(): Promise<boolean> {
    const worker = this.#fork(this.#inForce);
    const started = await worker.started;
    if (started) this.#watch(worker);
    return started !== undefined;
  }

  #sayHowMany(count: number): false {
    if (!this.#isStopping) this.#options.logger.error({ count }, 'only so many workers are new: others do not start');
    return false;
  }

  /** Starts those that are missing. */
  #fill(): void {
    while (!this.#isStopping && this.#staying.length < this.#count) this.#watch(this.#fork(this.#inForce));
  }

  /** Puts another one in its place, should it end by itself. */
  #watch(worker: WorkerProcess): void {
    void worker.exited.then((exit) => {
      if (!this.#isStopping && !worker.isLeaving) void this.#replace(worker, exit);
    });
  }

  async #replace(worker: WorkerProcess, exit: Exit): Promise<void> {
    const { logger, onHopeless } = this.#options;
    const lived = worker.serving ? performance.now() - worker.servingSince : 0;
    this.#brief = lived < LIVED_MS ? this.#brief + 1 : 0;
    this.#failed = worker.serving || exit.signal !== null ? 0 : this.#failed + 1;
    logger.error(wordsOf(exit), 'a worker has ended by itself');
    if (this.#failed >= MOST_FAILED && !this.isServing) return onHopeless(exit);
    await sleep(Math.min(MOST_PAUSE_MS, PAUSE_MS * 2 ** this.#brief));
    this.#fill();
  }
}

const NOT_STARTED = 'a worker with the new configuration does not start: the workers go on as they are';

/** Of a process that was never there, the system's code. */
const wordsOf = ({ code, signal, errno }: Exit) =>
  signal === null ? { errno: errno ?? `status ${code}` } : { signal };
