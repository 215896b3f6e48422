import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import type { Entry } from '../store/store.ts';
import { type Input, inputOf, jsonOf } from './inputs.ts';
import { type GoodLeg, isBad, isGood, type Leg } from './leg.ts';
import type { Overview } from './sections.ts';

interface Made {
  /** Names and texts of the sections that it was made of; of those that a validator tells apart, that. */
  readonly of: readonly string[];
  readonly text: string;
}

/** What is kept with a copy takes at most as many times its size: it is not counted among the copies. */
const MOST = 2;

/** What the function of an overview makes of its sections. What it has made of copies is kept with the largest of them. */
export class Computed {
  readonly #overview: Overview;
  readonly #made = new WeakMap<Entry, Made>();

  constructor(overview: Overview) {
    this.#overview = overview;
  }

  /**
   * Where the function throws, or what it gives is no JSON, it has failed. It is not called where a required section has
   * failed, nor twice for the same copies.
   */
  of(legs: ReadonlyMap<string, Leg>, clock: Clock): Leg {
    const { sections } = this.#overview;
    const bad = [...legs].find(([name, leg]) => sections[name]?.required && isBad(leg))?.[1];
    if (bad && isBad(bad)) return { state: 'skipped', error: bad.error, ms: 0 };
    const good = new Map([...legs].flatMap(([name, leg]) => (isGood(leg) ? [[name, leg] as const] : [])));
    const startedAt = clock.now();
    const took = () => clock.now() - startedAt;
    try {
      const text = this.#textOf(good);
      return { ...madeOf([...good.values()]), text, entry: undefined, etag: '', ms: took() };
    } catch (cause) {
      return { state: 'failed', error: GatewayError.of('internal_error', { cause }), ms: took() };
    }
  }

  /** @throws whatever the function throws, and TypeError if it gives no JSON */
  #textOf(good: ReadonlyMap<string, GoodLeg>): string {
    let largest: Entry | undefined;
    const of: string[] = [];
    for (const [name, leg] of good) {
      if (leg.entry && leg.entry.text.length > (largest?.text.length ?? 0)) largest = leg.entry;
      of.push(name, validatorOf(leg));
    }
    const kept = largest && this.#made.get(largest);
    if (kept && of.length === kept.of.length && of.every((one, at) => one === kept.of[at])) return kept.text;
    const text = this.#compute(new Map(Array.from(good, ([name, leg]) => [name, inputOf(leg.text)])));
    const size = of.reduce((sum, one) => sum + one.length, text.length);
    if (largest && size <= MOST * largest.text.length) this.#made.set(largest, { of, text });
    return text;
  }

  #compute(inputs: ReadonlyMap<string, Input>): string {
    const { sections, compute } = this.#overview;
    const values = Object.keys(sections).map((name) => [name, inputs.get(name)?.value ?? null] as const);
    return jsonOf(compute?.(Object.freeze(Object.fromEntries(values))), [...inputs.values()]);
  }
}

/** A text with links, or a part of a copy, is told apart by itself. */
const validatorOf = ({ etag, text, entry }: GoodLeg) => (etag !== '' && text === entry?.text ? etag : text);

/** As old as the oldest of what it is made of, and kept only if all of that may be. */
const madeOf = (good: readonly GoodLeg[]) => ({
  state: good.some(({ state }) => state === 'stale') ? ('stale' as const) : ('fresh' as const),
  age: Math.max(0, ...good.map(({ age }) => age)),
  ttl: good.some(({ ttl }) => ttl === undefined) ? undefined : Math.min(...good.map(({ ttl = 0 }) => ttl)),
  code: good.find(({ code }) => code !== undefined)?.code,
  isCacheable: good.every(({ isCacheable }) => isCacheable),
});
