import { REASONS } from '../../../core/errors.ts';
import { STATUS_CLASSES } from '../../../core/metrics.ts';

const STEP_MS = 2_000;
/** Ten minutes. */
const STEPS = 300;

/** Durations are told apart by their size: four sizes to each doubling, from 0.05 ms on. */
const LEAST_MS = 0.05;

/** How often something happened: by its name, and durations by their size. */
type Counts = Map<string | number, number>;

const newStep = (): Counts => new Map();

/** What happened in each two seconds of the last ten minutes. The last step is not over. */
export class Steps {
  readonly #steps = Array.from({ length: STEPS }, newStep);
  #last = 0;

  count(what: string | number, now: number): void {
    const counts = this.#at(now);
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }

  took(ms: number, now: number): void {
    this.count(Math.ceil(4 * Math.log2(Math.max(ms, LEAST_MS) / LEAST_MS)), now);
  }

  /** By name, the oldest first. Durations in milliseconds, null where there were no requests. */
  plots(now: number) {
    this.#at(now);
    const lines = (names: readonly string[]) =>
      Object.fromEntries(names.map((name) => [name, this.#steps.map((counts) => counts.get(name) ?? 0)]));
    const quantiles = (share: number) => this.#steps.map((counts) => quantile(counts, share));
    return {
      stepMs: STEP_MS,
      status: lines(STATUS_CLASSES),
      duration: { p50: quantiles(0.5), p95: quantiles(0.95) },
      cache: lines(['hit', 'stale', 'miss']),
      failures: lines(REASONS.filter((reason) => this.#steps.some((counts) => counts.has(reason)))),
    };
  }

  #at(now: number): Counts {
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

function quantile(counts: Counts, share: number): number | null {
  const durations = [...counts].filter((one): one is [size: number, count: number] => typeof one[0] === 'number');
  let left = share * durations.reduce((sum, [, count]) => sum + count, 0);
  const found = durations.toSorted(([one], [other]) => one - other).find(([, count]) => (left -= count) <= 0);
  return found ? Math.round(LEAST_MS * 2 ** ((found[0] - 0.5) / 4) * 100) / 100 : null;
}
