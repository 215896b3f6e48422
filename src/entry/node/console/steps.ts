import { REASONS } from '../../../core/errors.ts';
import { STATUS_CLASSES } from '../../../core/metrics.ts';

const STEP_MS = 2_000;
/** Ten minutes. */
const STEPS = 300;
const CACHE = ['hit', 'stale', 'miss'] as const;

/** Durations are counted by size: four sizes to each doubling, from 0.05 ms to three minutes. */
const SIZES = 88;
const LEAST_MS = 0.05;

const newStep = () => ({ counts: new Map<string, number>(), sizes: new Uint32Array(SIZES) });

/** What happened in each two seconds of the last ten minutes. The last step is not over. */
export class Steps {
  readonly #steps = Array.from({ length: STEPS }, newStep);
  #last = 0;

  /** One more of what has that name in a plot. */
  count(name: string, now: number): void {
    const { counts } = this.#at(now);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }

  took(ms: number, now: number): void {
    const { sizes } = this.#at(now);
    const size = Math.min(SIZES - 1, Math.ceil(4 * Math.log2(Math.max(ms, LEAST_MS) / LEAST_MS)));
    sizes[size] = (sizes[size] ?? 0) + 1;
  }

  /** By name, the oldest first. Durations in milliseconds, null where there were no requests. */
  plots(now: number) {
    this.#at(now);
    const lines = (names: readonly string[]) =>
      Object.fromEntries(names.map((name) => [name, this.#steps.map(({ counts }) => counts.get(name) ?? 0)]));
    const quantiles = (share: number) => this.#steps.map(({ sizes }) => quantile(sizes, share));
    return {
      stepMs: STEP_MS,
      status: lines(STATUS_CLASSES),
      duration: { p50: quantiles(0.5), p95: quantiles(0.95) },
      cache: lines(CACHE),
      failures: lines(REASONS.filter((reason) => this.#steps.some(({ counts }) => counts.has(reason)))),
    };
  }

  #at(now: number) {
    const number = Math.floor(now / STEP_MS);
    const passed = Math.min(STEPS, number - this.#last);
    if (passed > 0) {
      this.#steps.splice(0, passed);
      this.#steps.push(...Array.from({ length: passed }, newStep));
      this.#last = number;
    }
    return this.#steps.at(-1) ?? newStep();
  }
}

function quantile(sizes: Uint32Array, share: number): number | null {
  const all = sizes.reduce((sum, count) => sum + count, 0);
  let left = share * all;
  const size = sizes.findIndex((count) => (left -= count) <= 0);
  return all === 0 ? null : Math.round(LEAST_MS * 2 ** ((size - 0.5) / 4) * 100) / 100;
}
