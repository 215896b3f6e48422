import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/** Characters that are written at once. */
const BLOCK = 8_192;
const FLUSH_MS = 100;
/** Characters that are kept while they cannot be written; and what was being written then is kept beside them. */
const MOST_KEPT = 4 * 1024 * 1024;
const END_MS = 200;
const TRY_AGAIN_MS = 10;
const STANDARD_OUTPUT = 1;

/**
 * Lines on standard output. They are written in blocks, at the latest after 100 ms; synchronously, as `console` does, since handing
 * blocks to the thread pool costs more than writing them. Nothing waits for a reader that stalls, a full disk or a pipe
 * whose reader has gone: lines are kept then, up to a bound, and beyond it dropped.
 */
export class Lines {
  /** How many were dropped since the start. */
  dropped = 0;
  readonly #onDropped: (count: number) => void;
  /** What was being written when no more was taken. */
  #cut = Buffer.alloc(0);
  #kept = '';
  /** Characters that came since the last try. */
  #untried = 0;
  /** Of `dropped`, those that `#onDropped` was told of. */
  #told = 0;

  /** `onDropped` is called once all that was kept is written. */
  constructor(onDropped: (count: number) => void) {
    this.#onDropped = onDropped;
    // What opens them makes pipes and sockets non-blocking, for the writes of `flush` too. An error that nobody hears ends the process.
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
    setInterval(() => this.flush(), FLUSH_MS).unref();
  }

  add(line: string): void {
    if (this.#kept.length + line.length > MOST_KEPT) this.dropped++;
    else this.#kept += line;
    this.#untried += line.length;
    if (this.#untried > BLOCK) this.flush();
  }

  /** Writes what is taken at once; whether that was all. */
  flush(): boolean {
    this.#untried = 0;
    while (this.#cut.length > 0 || this.#kept !== '') {
      if (this.#cut.length === 0) {
        this.#cut = Buffer.from(this.#kept);
        this.#kept = '';
      }
      const taken = bytesTaken(this.#cut);
      if (taken === 0) return false;
      this.#cut = this.#cut.subarray(taken);
    }
    this.#tell();
    return true;
  }

  /** For the end of the process, which waits 200 ms at most. */
  async end(): Promise<void> {
    const endAt = performance.now() + END_MS;
    while (!this.flush() && performance.now() < endAt) await delay(TRY_AGAIN_MS);
  }

  #tell(): void {
    const untold = this.dropped - this.#told;
    this.#told = this.dropped;
    if (untold > 0) this.#onDropped(untold);
  }
}

/** 0 where it fails, whatever the reason: the next try may do better. */
function bytesTaken(bytes: Uint8Array): number {
  try {
    return writeSync(STANDARD_OUTPUT, bytes);
  } catch {
    return 0;
  }
}
