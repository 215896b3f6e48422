import { GatewayError } from '../../../core/errors.ts';
import type { Clock } from '../../../core/runtime.ts';
import { VERSION } from '../../../core/version.ts';
import type { Figures, Measuring } from './figures.ts';
import type { Shown } from './recorder.ts';

const EVERY_MS = 1_000;
const MOST_WATCHERS = 8;
/** Events that a watcher may miss before it is cut off. */
const MOST_MISSED = 30;

const STOPPING = 'event: stopping\ndata: {}\n\n';

/** A page that is open somewhere. */
interface Watcher {
  /** How many requests and writes it has been told of, of all that there were. */
  ended: number;
  unknown: number;
  missed: number;
  isNew: boolean;
  /** Set while it waits for an event. */
  tell: ((text: string | undefined) => void) | undefined;
  cut: () => void;
}

interface WatchersOptions {
  readonly clock: Clock;
  readonly recordings: Shown;
  readonly measuring: Measuring;
  readonly slowMs: number;
  readonly isStoreShared: boolean;
}

/**
 * Tells pages once a second what is so. An event is made for a page that waits for one: nothing is kept for a reader that
 * stalls, which is told later of what it has missed, or cut off.
 */
export class Watchers {
  readonly #options: WatchersOptions;
  readonly #about: object;
  readonly #watchers = new Set<Watcher>();
  #figures: Figures | null = null;
  #stopTimer: (() => void) | undefined;
  #hasEnded = false;

  constructor(options: WatchersOptions) {
    const { clock, slowMs, isStoreShared } = options;
    this.#options = options;
    this.#about = {
      version: VERSION,
      node: process.version,
      pid: process.pid,
      since: clock.wall(),
      slowMs,
      isStoreShared,
    };
  }

  get size(): number {
    return this.#watchers.size;
  }

  /** Server-sent events. @throws GatewayError `overloaded`, `not_ready` */
  watch(): ReadableStream<Uint8Array<ArrayBuffer>> {
    if (this.#hasEnded) throw GatewayError.of('not_ready');
    if (this.#watchers.size >= MOST_WATCHERS)
      throw GatewayError.of('overloaded', { retryAfter: 5, detail: `${MOST_WATCHERS} pages watch already.` });
    const watcher: Watcher = { ended: 0, unknown: 0, missed: 0, isNew: true, tell: undefined, cut: () => undefined };
    const encoder = new TextEncoder();
    const source = {
      start: (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
        watcher.cut = () => controller.error(new Error('the watcher reads nothing'));
      },
      pull: async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>) => {
        const text = watcher.isNew ? this.#eventFor(watcher, this.#present()) : await this.#next(watcher);
        if (text === undefined) controller.close();
        else controller.enqueue(encoder.encode(text));
      },
      cancel: () => this.#leave(watcher),
    };
    this.#enter(watcher);
    return new ReadableStream(source, { highWaterMark: 0 });
  }

  /** The process stops: every page hears that it is over. */
  end(): void {
    this.#hasEnded = true;
    for (const watcher of this.#watchers) {
      this.#leave(watcher);
      watcher.tell?.(STOPPING); // after which `#next` closes it
    }
  }

  #enter(watcher: Watcher): void {
    this.#watchers.add(watcher);
    if (this.#watchers.size > 1) return;
    const { measuring } = this.#options;
    measuring.start();
    void measuring.take(); // what the first event's figures have grown from
    this.#wait();
  }

  #leave(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher) || this.#watchers.size > 0) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#figures = null;
    this.#options.measuring.stop();
  }

  #next(watcher: Watcher): Promise<string | undefined> {
    if (!this.#watchers.has(watcher)) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      watcher.tell = (text) => {
        watcher.tell = undefined;
        resolve(text);
      };
    });
  }

  #wait(): void {
    const stop = this.#options.clock.after(EVERY_MS, () => void this.#tick(stop));
    this.#stopTimer = stop;
  }

  /** `timer`: what began it; another one where all have left meanwhile and somebody has come anew. */
  async #tick(timer: () => void): Promise<void> {
    const figures = await this.#options.measuring.take();
    if (this.#stopTimer !== timer) return;
    this.#figures = figures;
    this.#wait();
    const present = this.#present();
    for (const watcher of this.#watchers) {
      if (watcher.tell) watcher.tell(this.#eventFor(watcher, present));
      else if (++watcher.missed > MOST_MISSED) {
        this.#leave(watcher);
        watcher.cut();
      }
    }
  }

  /** What all are told, without the brace at its end. */
  #present(): string {
    const { clock, recordings } = this.#options;
    const now = clock.now();
    const told = { at: Math.round(now), about: this.#about, figures: this.#figures, ...recordings.present(now) };
    return JSON.stringify(told).slice(0, -1);
  }

  /** With what is new to this one; to one that has just come all is. */
  #eventFor(watcher: Watcher, present: string): string {
    const { ended, unknownOutcomes } = this.#options.recordings;
    const [requests, writes] = [ended.since(watcher.ended), unknownOutcomes.since(watcher.unknown)];
    const { isNew } = watcher;
    Object.assign(watcher, { ended: ended.added, unknown: unknownOutcomes.added, missed: 0, isNew: false });
    return `data: ${present},"isFirst":${isNew},"ended":[${requests.join()}],"unknown":[${writes.join()}]}\n\n`;
  }
}
