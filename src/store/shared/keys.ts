import type { Clock } from '../../core/runtime.ts';
import type { Copies } from '../copies.ts';
import { type CacheKey, type Entry, type Found, freshFor } from '../store.ts';
import { type KeyQuestion, type KeyReply, MAX_VALUE_BYTES, type Save } from './engine.ts';
import type { Sealer } from './sealer.ts';

/** What an instance has of cache keys, and what it names and seals them with. */
export interface KeyParts {
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Each is used only where the engine's reply has the same version. */
  readonly copies: Copies;
}

/** What the engine is asked about a key, leases aside. */
export async function questionOf({ sealer, copies, clock }: KeyParts, key: CacheKey): Promise<KeyQuestion> {
  const named = await sealer.namedKey(key);
  const copy = copies.get(key);
  if (!copy) return named;
  const isFresh = copy.entry.storedAt + freshFor(copy.entry, key.freshMs) > clock.now();
  return { ...named, have: { version: copy.version, askedAt: copy.askedAt, isFresh } };
}

/** The valid copy after a reply: the instance's own, or the one that came, which is its own from now on. `now`: the engine's. */
export async function entryOf(
  { sealer, copies, clock }: KeyParts,
  key: CacheKey,
  { version, copy }: KeyReply,
  now: number,
): Promise<Entry | undefined> {
  const own = copies.get(key);
  const isAhead = own !== undefined && own.askedAt > now;
  if (isAhead) copies.delete(key); // the engine's clock was set back: none that is newer would take its place
  if (!copy?.value) return own?.version === version && !isAhead ? own.entry : undefined;
  const entry = await sealer.openCopy(key, copy.value, clock.now() - copy.ageMs);
  if (entry) copies.set(key, { version, askedAt: copy.askedAt }, entry);
  return entry;
}

/** The end of a fetch: a copy that is too large for the engine is none. */
export async function saveOf(sealer: Sealer, key: CacheKey, found: Found, entry: Entry | undefined): Promise<Save> {
  const value = entry && (await sealer.sealCopy(key, entry));
  const isKept = value !== undefined && value.length <= MAX_VALUE_BYTES;
  const copy = isKept ? { value, freshMs: freshFor(entry, key.freshMs), lifeMs: key.lifeMs } : undefined;
  return { ...(await sealer.namedKey(key)), version: found.version, askedAt: found.askedAt, copy };
}
