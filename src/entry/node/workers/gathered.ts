import { added, lastCounts, type Measured, measureProcess, type ReadMetrics } from '../metrics/measured.ts';
import type { WorkerProcess } from './process.ts';

/** For so long a worker that is busy is waited for. */
const LOOK_MS = 500;

/** What all workers have counted, and what was counted by those that are gone. */
export class Gathered {
  readonly #workers: () => Iterable<WorkerProcess>;
  readonly #own: ReadMetrics;
  /** Of those that are gone: else each death would look like a reset. */
  #gone = Promise.resolve<Measured>([]);
  #looking: Promise<void> | undefined;

  /** `own`: what the primary measures beside its process. */
  constructor(workers: () => Iterable<WorkerProcess>, own: ReadMetrics) {
    this.#workers = workers;
    this.#own = own;
  }

  /** One is gone: what it had counted is kept. */
  forget({ last }: WorkerProcess): void {
    if (last) this.#gone = this.#gone.then((gone) => added([gone, lastCounts(last.measured)]).measured());
  }

  scrape = async () => (await this.#added()).scraped();

  async #added() {
    await (this.#looking ??= this.#look());
    // Of a worker that does not answer in time, what it said last. One that has gone meanwhile is among those that are gone.
    const measured = [...this.#workers()].flatMap(({ last }) => (last ? [last.measured] : []));
    const [gone, ofPrimary, own] = await Promise.all([this.#gone, measureProcess(), this.#own()]);
    return added([gone, ...measured, ofPrimary, own]);
  }

  async #look(): Promise<void> {
    await Promise.all(Array.from(this.#workers(), (worker) => worker.look(LOOK_MS)));
    this.#looking = undefined;
  }
}
