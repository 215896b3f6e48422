import cluster, { type Worker } from 'node:cluster';
import type { Writable } from 'node:stream';
import { handOn } from './handing.ts';
import { GIVEN } from './role.ts';
import type { FromWorker, Report, Started, ToWorker } from './role.ts';

/** How a process ended: by its status, or by a signal. */
export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
  /** The system's code where there never was a process. */
  readonly errno?: string | undefined;
}

/** One that has not begun to serve by then is ended. */
const START_MS = 60_000;

/** A worker, as the primary knows it. */
export class WorkerProcess {
  readonly #worker: Worker;
  readonly #started = Promise.withResolvers<Started | undefined>();
  readonly #exited = Promise.withResolvers<Exit>();
  readonly #questions = new Map<number, (report: Report | undefined) => void>();
  #asked = 0;
  /** What it had counted when it was asked last, or when it ended. */
  last: Report | undefined;
  /** Set while it serves. */
  serving: Started | undefined;
  servingSince = 0;
  /** Its end is wanted. */
  isLeaving = false;

  /** `given`: what it reads when it begins. `hasOther`: whether another one can take its connections. */
  constructor(env: NodeJS.ProcessEnv, given: string, hasOther: () => boolean) {
    this.#worker = cluster.fork(env);
    const { process: child } = this.#worker;
    const late = setTimeout(() => this.kill(), START_MS).unref();
    this.#worker.on('message', (message: FromWorker) => this.#hear(message));
    // What cannot be said to one that is gone; or there never was one.
    this.#worker.on('error', (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) this.#end({ code: 1, signal: null, errno: error.code });
    });
    this.#worker.on('exit', (code, signal) => this.#end({ code, signal }));
    void this.started.then(() => clearTimeout(late));
    if (child.pid === undefined) return;
    handOn(child, hasOther);
    const reading = child.stdio[GIVEN] as Writable;
    reading.on('error', () => undefined).end(given);
  }

  get takesConnections(): boolean {
    return this.serving !== undefined && !this.isLeaving && this.#worker.isConnected();
  }

  /** Undefined where it ended first. */
  get started(): Promise<Started | undefined> {
    return this.#started.promise;
  }

  get exited(): Promise<Exit> {
    return this.#exited.promise;
  }

  /** What it knows of itself; undefined where it does not say so in time. One that has not answered is not asked again. */
  look(mostMs: number): Promise<Report | undefined> {
    if (!this.serving || this.#questions.size > 0) return Promise.resolve(undefined);
    const id = ++this.#asked;
    return new Promise((resolve) => {
      const late = setTimeout(() => resolve(undefined), mostMs);
      this.#questions.set(id, (report) => {
        clearTimeout(late);
        resolve(report);
      });
      this.#tell({ kind: 'look', id });
    });
  }

  /** It finishes what it has, and ends. `isReplaced`: another one serves in its place. */
  leave(isReplaced: boolean): void {
    this.isLeaving = true;
    if (this.serving) this.#tell({ kind: 'stop', isReplaced });
    else this.#worker.process.kill('SIGTERM');
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL');
  }

  #hear(message: FromWorker): void {
    if (message.kind === 'started') {
      this.serving = message;
      this.servingSince = performance.now();
      return this.#started.resolve(message);
    }
    this.last = message.report;
    if (message.kind === 'last') return;
    this.#questions.get(message.id)?.(message.report);
    this.#questions.delete(message.id);
  }

  #end(exit: Exit): void {
    this.#started.resolve(undefined);
    for (const answer of this.#questions.values()) answer(undefined);
    this.#exited.resolve(exit);
  }

  #tell(message: ToWorker): void {
    if (this.#worker.isConnected()) this.#worker.send(message);
  }
}
