import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import { type Input, inputOf, jsonOf } from './inputs.ts';
import { type GoodLeg, isBad, isGood, type Leg } from './leg.ts';
import type { Overview } from './sections.ts';

/**
 * What the function of an overview makes of its sections. Where it throws, or what it gives is no JSON, it has failed; where
 * a required one has, it is not called.
 */
export function computedOf({ sections, compute }: Overview, legs: ReadonlyMap<string, Leg>, clock: Clock): Leg {
  const bad = [...legs].find(([name, leg]) => sections[name]?.required && isBad(leg))?.[1];
  if (bad && isBad(bad)) return { state: 'skipped', error: bad.error, ms: 0 };
  const startedAt = clock.now();
  const took = () => clock.now() - startedAt;
  try {
    const inputs = new Map<string, Input>();
    for (const [name, leg] of legs) if (isGood(leg)) inputs.set(name, inputOf(leg.text));
    const values = Object.keys(sections).map((name) => [name, inputs.get(name)?.value ?? null] as const);
    const text = jsonOf(compute?.(Object.freeze(Object.fromEntries(values))), [...inputs.values()]);
    return { ...madeOf([...legs.values()].filter(isGood)), text, entry: undefined, etag: '', ms: took() };
  } catch (cause) {
    return { state: 'failed', error: GatewayError.of('internal_error', { cause }), ms: took() };
  }
}

/** As old as the oldest of what it is made of, and kept only if all of that may be. */
const madeOf = (good: readonly GoodLeg[]) => ({
  state: good.some(({ state }) => state === 'stale') ? ('stale' as const) : ('fresh' as const),
  age: Math.max(0, ...good.map(({ age }) => age)),
  ttl: good.some(({ ttl }) => ttl === undefined) ? undefined : Math.min(...good.map(({ ttl = 0 }) => ttl)),
  isCacheable: good.every(({ isCacheable }) => isCacheable),
});
