import type { CacheKey, Entry } from '../store.ts';
import type { Sealer } from './sealer.ts';

/** A copy can be opened for its account and key only. */
const additionalDataOf = ({ account, key }: CacheKey) => `copy ${account} ${key}`;

/** One line of JSON, then the body as it is, which need not be escaped that way. */
export function sealCopy(sealer: Sealer, key: CacheKey, { text, links, etag, validators, maxFreshMs }: Entry) {
  return sealer.sealCopy(additionalDataOf(key), `${JSON.stringify({ links, etag, validators, maxFreshMs })}\n${text}`);
}

export async function openCopy(
  sealer: Sealer,
  key: CacheKey,
  { value, storedAt }: { readonly value: Uint8Array; readonly storedAt: number },
): Promise<Entry | undefined> {
  const opened = await sealer.open(additionalDataOf(key), value);
  if (opened === undefined) return undefined;
  const end = opened.indexOf('\n');
  // Written by `sealCopy`, hence of this shape.
  const head = JSON.parse(opened.slice(0, end)) as Omit<Entry, 'text' | 'storedAt'>;
  return { ...head, storedAt, text: opened.slice(end + 1) };
}
