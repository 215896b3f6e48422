/** Text of a document in a file of code: nothing of it ends a comment or a literal, or looks like other text than it is. */

const INVISIBLE = /[\p{Cf}\p{Zl}\p{Zp}]/gu;

const escaped = (char: string) => `\\u{${char.codePointAt(0)?.toString(16)}}`;

/** A value without objects. */
export const literal = (value: unknown): string => JSON.stringify(value).replaceAll(INVISIBLE, escaped);

/** One line. */
export const plain = (text: string): string => text.replaceAll(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();

const LONGEST = 200;

/** The first paragraph of a description. */
export function brief(text: unknown): string {
  const [first = ''] = typeof text === 'string' ? text.trim().split(/\n\s*\n/) : [];
  const line = plain(first);
  return line.length > LONGEST ? `${line.slice(0, LONGEST).replace(/\s\S*$/, '')} …`.toWellFormed() : line;
}

/** A text of the document that begins it is no instruction to a compiler, such as `@ts-nocheck`. */
export const comment = (words: string): string => `// ${plain(words).replace(/^(?=[@#/])/, 'field ')}`;

export const keyOf = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? name : literal(name));

/** Lines in brackets. */
export const block = (open: string, lines: readonly string[], close: string): string =>
  lines.length === 0 ? open + close : `${open}\n${lines.join('\n').replaceAll(/^/gm, '  ')}\n${close}`;

const wordsIn = (text: string) =>
  text
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .match(/[A-Za-z0-9]+/g) ?? [];

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

export const pascal = (text: string): string => wordsIn(text).map(capital).join('');

export const camel = (text: string): string =>
  pascal(text).replace(/^[A-Z]+(?![a-z])|^[A-Z]/, (letters) => letters.toLowerCase());

/** Names, each given once. */
export class Names {
  readonly #taken: Set<string>;

  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken);
  }

  /** The name, or one like it. `otherwise`: where nothing of it may be in a name. */
  of(wanted: string, otherwise: string, most = 60): string {
    const begun = /^[A-Za-z]/.test(wanted) ? wanted : otherwise + wanted;
    const base = begun.slice(0, most);
    let name = base in {} ? `${base}1` : base;
    for (let count = 2; this.#taken.has(name); count++) name = base + count;
    this.#taken.add(name);
    return name;
  }
}
