import { createHash, randomBytes } from 'node:crypto';
import { relative } from 'node:path';

/** Stands in every credential, e-mail, card and client secret that tests make; nothing else contains it. */
export const LEAK_MARK = 'LEAKMARK';

/** The mark inside longer base64, at each of the three alignments: the characters that no neighbour has a part in. */
const base64Marks = [0, 1, 2].map((shift) =>
  Buffer.from(`${' '.repeat(shift)}${LEAK_MARK}`)
    .toString('base64')
    .slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + LEAK_MARK.length) * 8) / 6)),
);

/** The mark as it is and as encodings write it; these texts give away secrets made by any test, of any process. */
const MARKS: readonly string[] = [LEAK_MARK, Buffer.from(LEAK_MARK).toString('hex'), ...base64Marks];

/** What neither a line of the log nor a span may hold. The sandbox's own credentials and secrets carry no mark, hence their forms. */
export const SECRET_FORMS: Readonly<Record<string, RegExp>> = {
  'a mark of a secret': new RegExp(MARKS.join('|'), 'i'), // letters and digits all
  'a key of a sandbox account': /sandbox-(?:[a-z]+-key|token-\d|api-key-\d|code-)/,
  'a client secret of the sandbox': /sandbox_\w+_secret|sandbox_intent_|sandbox_method_/,
  'an e-mail address': /[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}/i,
  'a credential or a cookie': /\b(?:token|bearer|basic) [\w+/.=-]{8,}|__Host-Http-portico=/i,
};

/** Made by this process and not hashed yet. */
let fresh: string[] = [];

/** By their plain hashes: an unkeyed hash gives a secret away as well, to whoever has a list of keys to look it up in. */
const byHash = new Map<string, string>();

const remember = (value: string) => {
  fresh.push(value);
  return value;
};

/** What vitest knows of the file and the test that run now. */
const WORKER = '__vitest_worker__';

interface Worker {
  readonly filepath?: string;
  readonly current?: { readonly id: string };
}

/** How many names a test, or the top of a file, has made. */
const made = new Map<string, number>();

/**
 * A text that no other call gives, in any file, since files may share a store. A test gets the same ones in every run: by
 * them copies of an account have their places in a shared store, where one may take the place of another.
 */
export function unique(): string {
  const worker = (globalThis as Readonly<Record<string, unknown>>)[WORKER] as Worker | undefined;
  if (!worker) return randomBytes(6).toString('hex');
  const { filepath = '', current } = worker;
  const by = `${relative(process.cwd(), filepath)} ${current?.id ?? ''}`;
  const n = (made.get(by) ?? 0) + 1;
  made.set(by, n);
  return createHash('sha256').update(`${by} ${n}`).digest('hex').slice(0, 16);
}

/** A credential, client secret or code: visible ASCII, never twice the same. `kind` says what it is for. */
export const secret = (kind = 'key'): string => remember(`pk-${LEAK_MARK}-${kind}-${unique()}`);

export const email = (): string => remember(`${LEAK_MARK}-${unique()}@wallet.example`);

/** The document only promises text, so this may carry the mark; four digits would turn up by chance in ids. */
export const cardLast4 = `4242-${LEAK_MARK}`;

export const cardHolder = `A. ${LEAK_MARK} Holder`;

const HEX_LENGTH = 64;
const BASE64_LENGTH = 43;

/** Every part of the text that could be a hash, in the form in which they are kept. */
const possibleHashes = function* (text: string): Generator<string> {
  for (const [run] of text.matchAll(/[0-9a-f]{64,}/g)) yield* windows(run, HEX_LENGTH);
  for (const [run] of text.matchAll(/[\w+/-]{43,}/g))
    yield* windows(run.replaceAll('+', '-').replaceAll('/', '_'), BASE64_LENGTH);
};

const windows = function* (run: string, length: number): Generator<string> {
  for (let at = 0; at + length <= run.length; at++) yield run.slice(at, at + length);
};

/** What in the text gives secrets away: marks, and plain hashes of secrets made by this process. `[]`: clean. */
export const leaksIn = (text: string): readonly string[] => {
  for (const value of fresh) {
    const digest = createHash('sha256').update(value).digest();
    byHash.set(digest.toString('hex'), value).set(digest.toString('base64url'), value);
  }
  fresh = [];
  const lower = text.toLowerCase();
  const found = MARKS.filter((mark) => text.includes(mark) || lower.includes(mark.toLowerCase()));
  const hashed = Array.from(possibleHashes(text), (hash) => byHash.get(hash)).filter((value) => value !== undefined);
  return [...found, ...new Set(hashed)];
};
