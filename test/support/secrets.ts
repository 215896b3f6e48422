import { createHash, randomBytes } from 'node:crypto';

/** Stands in every credential, e-mail, card and client secret that tests make; nothing else contains it. */
export const LEAK_MARK = 'LEAKMARK';

/** The mark inside longer base64, at each of the three alignments: the characters that no neighbour has a part in. */
const base64Marks = [0, 1, 2].map((shift) =>
  Buffer.from(`${' '.repeat(shift)}${LEAK_MARK}`)
    .toString('base64')
    .slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + LEAK_MARK.length) * 8) / 6)),
);

/** The mark as it is and as encodings write it; these texts give away secrets made by any test, of any process. */
export const MARKS: readonly string[] = [LEAK_MARK, Buffer.from(LEAK_MARK).toString('hex'), ...base64Marks];

const made: string[] = [];

const remember = (value: string) => {
  made.push(value);
  return value;
};

// Unique across files too, since those may share a store.
const unique = () => `${made.length}${randomBytes(6).toString('hex')}`;

/** A credential, client secret or code: visible ASCII, never twice the same. `kind` says what it is for. */
export const secret = (kind = 'key'): string => remember(`pk-${LEAK_MARK}-${kind}-${unique()}`);

export const email = (): string => remember(`${LEAK_MARK}-${unique()}@wallet.example`);

/** The document only promises text, so this may carry the mark; four digits would turn up by chance in ids. */
export const cardLast4 = `4242-${LEAK_MARK}`;

export const cardHolder = `A. ${LEAK_MARK} Holder`;

/** An unkeyed hash gives a secret away as well: whoever has a list of keys can look it up. */
const hashesOf = (value: string) =>
  (['hex', 'base64', 'base64url'] as const).map((encoding) => createHash('sha256').update(value).digest(encoding));

/** What in the text gives secrets away: marks, and plain hashes of secrets made in this test file. `[]`: clean. */
export const leaksIn = (text: string): readonly string[] => {
  const lower = text.toLowerCase();
  const found = MARKS.filter((mark) => text.includes(mark) || lower.includes(mark.toLowerCase()));
  return [...found, ...made.filter((value) => hashesOf(value).some((hash) => text.includes(hash)))];
};
