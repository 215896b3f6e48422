import type { CacheKey, Entry } from '../store.ts';
import type { Sealer } from './sealer.ts';

/** Whose it is and what it answers: a copy opens in no other place. */
const dataOf = ({ account, key }: CacheKey) => `copy ${account} ${key}`;

/** The body as it is, behind a line of what else there is to know: no text is quoted and unquoted again. */
export function sealCopy(sealer: Sealer, key: CacheKey, { text, links, etag, validators, maxFreshMs }: Entry) {
  return sealer.sealCopy(dataOf(key), `${JSON.stringify({ links, etag, validators, maxFreshMs })}\n${text}`);
}

/** Nothing where it cannot be opened. */
export async function openCopy(
  sealer: Sealer,
  key: CacheKey,
  { value, storedAt }: { readonly value: Uint8Array; readonly storedAt: number },
): Promise<Entry | undefined> {
  const opened = await sealer.open(dataOf(key), value);
  if (opened === undefined) return undefined;
  const end = opened.indexOf('\n');
  // Sealed by an instance of ours, hence of this shape.
  const head = JSON.parse(opened.slice(0, end)) as Omit<Entry, 'text' | 'storedAt'>;
  return { ...head, storedAt, text: opened.slice(end + 1) };
}
