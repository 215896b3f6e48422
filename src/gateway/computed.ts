import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import { type GoodLeg, isBad, isGood, type Leg } from './leg.ts';
import type { Overview } from './sections.ts';

/**
 * What the function of an overview makes of its sections. Where it throws, or what it gives is no JSON, it has failed. It
 * is not called where a required section has failed.
 */
export function computedOf({ sections, compute }: Overview, legs: ReadonlyMap<string, Leg>, clock: Clock): Leg {
  const bad = [...legs].find(([name, leg]) => sections[name]?.required && isBad(leg))?.[1];
  if (bad && isBad(bad)) return { state: 'skipped', error: bad.error, ms: 0 };
  const startedAt = clock.now();
  const inputs = Object.keys(sections).map((name) => [name, inputOf(legs.get(name))] as const);
  try {
    const made: unknown = compute?.(Object.fromEntries(inputs));
    if (made instanceof Promise) made.catch(() => undefined); // its failure would end the process
    const text = made instanceof Promise ? undefined : (JSON.stringify(made) as string | undefined);
    if (text === undefined) throw new TypeError('what is computed is no JSON');
    const good = [...legs.values()].filter(isGood);
    return { ...madeOf(good), text, entry: undefined, etag: '', ms: clock.now() - startedAt };
  } catch (cause) {
    return { state: 'failed', error: GatewayError.of('internal_error', { cause }), ms: clock.now() - startedAt };
  }
}

const inputOf = (leg: Leg | undefined): unknown => (leg && isGood(leg) ? JSON.parse(leg.text) : null);

/** As old as the oldest of what it is made of, and kept only if all of that may be. */
const madeOf = (good: readonly GoodLeg[]) => ({
  state: good.some(({ state }) => state === 'stale') ? ('stale' as const) : ('fresh' as const),
  age: Math.max(0, ...good.map(({ age }) => age)),
  ttl: good.some(({ ttl }) => ttl === undefined) ? undefined : Math.min(...good.map(({ ttl = 0 }) => ttl)),
  code: good.find(({ code }) => code !== undefined)?.code,
  isCacheable: good.every(({ isCacheable }) => isCacheable),
});
