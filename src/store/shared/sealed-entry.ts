import type { Entry, Versions } from '../store.ts';

interface Opened {
  readonly entry: Entry;
  /** The versions of the account's other faces. */
  readonly others: Versions;
}

/** The body as it is, behind a line of what else there is to know: no text is quoted and unquoted again. */
export function encodeEntry({ text, ...head }: Entry, others: Versions): string {
  return `${JSON.stringify({ ...head, others })}\n${text}`;
}

export function decodeEntry(encoded: string): Opened {
  const end = encoded.indexOf('\n');
  // Sealed by an instance of ours, hence of this shape.
  const { others, ...head } = JSON.parse(encoded.slice(0, end)) as Omit<Entry, 'text'> & { others: Versions };
  return { entry: { ...head, text: encoded.slice(end + 1) }, others };
}
