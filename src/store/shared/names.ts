import { type CacheKey, EVERYTHING, type Tag } from '../store.ts';
import { ALL } from './engine.ts';
import type { Sealer } from './sealer.ts';

/** A cache key as an engine knows it. */
export interface NamedKey {
  readonly key: string;
  /** The first is the key's own, for copies that are dropped alone. */
  readonly tags: readonly string[];
}

export async function namedKey(sealer: Sealer, { key, tags }: CacheKey): Promise<NamedKey> {
  // No other tag begins with `=`.
  return { key: await sealer.nameOf(key), tags: await namedTags(sealer, [`=${key}`, ...tags]) };
}

export const namedTags = (sealer: Sealer, tags: readonly Tag[]): Promise<readonly string[]> =>
  Promise.all(tags.map(async (tag) => (tag === EVERYTHING ? ALL : sealer.nameOf(tag))));
