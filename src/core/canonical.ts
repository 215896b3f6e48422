import { endOfScalar, endOfString, skipSpace } from './json.ts';

export interface Canonical {
  /** One text for all JSON texts that mean the same. */
  readonly text: string;
  /** Whether a name stands twice in an object. */
  readonly hasTwins: boolean;
}

/**
 * Members by name, no space, strings escaped in one way; numbers stay as they are written, since parsing would make one
 * of two that differ. Members of the outermost object whose name is in `without` are left out. In one pass, since the texts are a client's; they have to be valid JSON, and not deep.
 */
export function canonical(text: string, without?: ReadonlySet<string>): Canonical {
  const reader = new Reader(text, without);
  return { text: reader.value(), hasTwins: reader.hasTwins };
}

class Reader {
  hasTwins = false;
  #at = 0;
  readonly #text: string;
  #without: ReadonlySet<string> | undefined;

  constructor(text: string, without: ReadonlySet<string> | undefined) {
    this.#text = text;
    this.#without = without;
  }

  value(): string {
    this.#at = skipSpace(this.#text, this.#at);
    const first = this.#text[this.#at];
    if (first !== '{') this.#without = undefined; // it is of the outermost object
    if (first === '{') return `{${this.#members().join(',')}}`;
    if (first === '[') return `[${this.#upTo(']', () => this.value()).join(',')}]`;
    return first === '"' ? this.#string() : this.#cut(endOfScalar(this.#text, this.#at));
  }

  #members(): string[] {
    const without = this.#without;
    this.#without = undefined; // of the outermost alone
    const members = new Map<string, string>();
    const all = this.#upTo('}', () => {
      const name = this.#string();
      this.#at = skipSpace(this.#text, this.#at) + 1; // the colon
      const member = `${name}:${this.value()}`;
      if (without?.has(nameOf(name))) return '';
      if (members.has(name)) this.hasTwins = true;
      members.set(name, member);
      return member;
    });
    return this.hasTwins
      ? all.filter((member) => member !== '')
      : [...members].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, member]) => member);
  }

  /** Items of an array or an object, from its opening to behind its closing. */
  #upTo(closing: string, item: () => string): string[] {
    const items: string[] = [];
    this.#at = skipSpace(this.#text, this.#at + 1);
    while (this.#text[this.#at] !== closing) {
      items.push(item());
      this.#at = skipSpace(this.#text, this.#at);
      if (this.#text[this.#at] === ',') this.#at = skipSpace(this.#text, this.#at + 1);
    }
    this.#at++;
    return items;
  }

  #string(): string {
    const raw = this.#cut(endOfString(this.#text, this.#at));
    return raw.includes('\\') || !raw.isWellFormed() ? JSON.stringify(JSON.parse(raw)) : raw;
  }

  #cut(end: number): string {
    const part = this.#text.slice(this.#at, end);
    this.#at = end;
    return part;
  }
}

/** Of a name as it is written canonically, in quotes. */
const nameOf = (text: string) => (text.includes('\\') ? String(JSON.parse(text)) : text.slice(1, -1));
