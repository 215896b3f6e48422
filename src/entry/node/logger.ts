import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import type { Config } from '../../config.ts';
import type { LogFields, Logger } from '../../core/logger.ts';
import { assignment } from './assignment.ts';

const FLUSH_MS = 100;

/**
 * JSON lines on standard output; callers pass allow-listed fields only. Those of requests wait for others, to be written
 * together. `dropped` says how many lines could not be written; `end` writes what is left, if that is possible soon.
 */
export function pinoLogger(level: Config['logLevel']): Logger & { dropped: () => number; end: () => Promise<void> } {
  const output = new Output();
  const log = pino({ level, base: null, timestamp, formatters: { level: (label) => ({ level: label }) } }, output);
  // Node opens these when they are first asked for, and makes pipes and sockets non-blocking, for `Output` too. An error
  // that nobody hears would end the process.
  for (const stream of [process.stdout, process.stderr]) stream.off('error', ignored).on('error', ignored);
  let told = 0;
  const flushing = setInterval(() => {
    if (!output.flush() || output.dropped === told) return;
    log.warn({ count: output.dropped - told }, 'log lines were dropped');
    told = output.dropped;
  }, FLUSH_MS);
  flushing.unref();
  const atOnce = (of: 'info' | 'warn' | 'error') => (fields: LogFields, message: string) => {
    log[of](fields, message);
    output.flush();
  };
  return {
    info: atOnce('info'),
    warn: atOnce('warn'),
    error: atOnce('error'),
    request: (fields) => (fields.status < 500 ? log.info(fields, 'request') : log.error(fields, 'request')),
    dropped: () => output.dropped,
    async end() {
      clearInterval(flushing);
      await output.end();
    },
  };
}

const ignored = () => undefined;

let last = { ms: 0, text: '' };

/** As pino's `isoTime`, which costs 1.5 µs a line; this one is made anew each millisecond. */
function timestamp(): string {
  const ms = Date.now();
  if (ms !== last.ms) last = { ms, text: `,"time":"${new Date(ms).toISOString()}"` };
  return last.text;
}

const STANDARD_OUTPUT = 1;
/** `PIPE_BUF`: what is larger may be cut in two by the lines of another process. */
const UNDIVIDED = 4_096;
/** Characters that are written together. */
const BLOCK = 8_192;
/** Characters that are kept while they cannot be written; and what was being written then is kept beside them. */
const MOST_KEPT = 4 * 1024 * 1024;

interface Stream {
  readonly isTTY?: boolean;
  readonly _handle?: { readonly setBlocking?: (is: boolean) => void };
}

/**
 * Where pino writes: standard output, in blocks, at the latest after 100 ms; synchronously, since handing
 * blocks to the thread pool costs more than writing them. Nothing waits for a reader that stalls, a full disk or a pipe
 * whose reader has gone, as pino's own destinations do: lines are kept then, up to a bound, and beyond it dropped.
 */
class Output {
  /** How many were dropped since the start. */
  dropped = 0;
  /** What was being written when no more was taken. */
  #cut = Buffer.alloc(0);
  #kept = '';
  /** Characters that came since the last try. */
  #untried = 0;

  write(line: string): void {
    if (this.#kept.length + line.length > MOST_KEPT) this.dropped++;
    else this.#kept += line;
    this.#untried += line.length;
    if (this.#untried > BLOCK) this.flush();
  }

  /** Writes what is taken at once; whether that was all. */
  flush(): boolean {
    this.#untried = 0;
    try {
      // A pipe or socket that several processes have becomes blocking for all whenever one of them is started or ends; a
      // reader that stalls would then stop requests.
      const { isTTY, _handle }: Stream = process.stdout;
      if (!isTTY) _handle?.setBlocking?.(false);
      while (this.#cut.length > 0 || this.#kept !== '') {
        if (this.#cut.length === 0) [this.#cut, this.#kept] = [Buffer.from(this.#kept), ''];
        // With other workers beside, lines stay whole where they can.
        const whole = assignment && this.#cut.length > UNDIVIDED ? this.#cut.lastIndexOf('\n', UNDIVIDED - 1) + 1 : 0;
        this.#cut = this.#cut.subarray(writeSync(STANDARD_OUTPUT, this.#cut, 0, whole || this.#cut.length));
      }
      return true;
    } catch {
      return false; // whatever the reason, the next try may do better
    }
  }

  /** For the end of the process, which waits 200 ms at most. */
  async end(): Promise<void> {
    const endAt = performance.now() + 200;
    while (!this.flush() && performance.now() < endAt) await delay(10);
  }
}
