import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 10;
const MB = 1_048_576;

/** How late the event loop was since the last look, in milliseconds, and memory in MB. */
export interface Load {
  readonly loopMs: { readonly p99: number; readonly max: number };
  readonly memory: { readonly rss: number; readonly heap: number; readonly external: number };
}

/** What this process is busy with. It is measured only while somebody looks. */
export class OwnLoad {
  readonly #loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });

  set isWatched(is: boolean) {
    if (is) this.#loop.enable();
    else this.#loop.disable();
    this.#loop.reset();
  }

  take(): Load {
    const loopMs = { p99: late(this.#loop.percentile(99)), max: late(this.#loop.max) };
    this.#loop.reset();
    const { rss, heapUsed, external } = process.memoryUsage();
    return {
      loopMs,
      memory: { rss: rounded(rss / MB), heap: rounded(heapUsed / MB), external: rounded(external / MB) },
    };
  }
}

/** The histogram holds the time between two looks, which is `RESOLUTION_MS` where nothing holds them up. */
const late = (nanoseconds: number) => rounded(Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS));

const rounded = (value: number) => Math.round(value * 100) / 100;
