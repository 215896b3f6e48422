import { endOfScalar, endOfString, skipSpace, stringAt } from './json.ts';

export interface Canonical {
  /** Equal for JSON texts with the same meaning. */
  readonly text: string;
  /** Whether an object has two members of the same name. */
  readonly hasDuplicateNames: boolean;
}

/**
 * Members sorted by name, no space, strings escaped in one way. Numbers stay as they are written: parsed, two different
 * ones could become equal. Members of the outermost object in `without` are left out. The text has to be valid JSON that
 * is not deep; it is read once, since a client may send a long one.
 */
export function canonical(text: string, without?: ReadonlySet<string>): Canonical {
  const scan = new Scan(text);
  return { text: scan.value(without), hasDuplicateNames: scan.hasDuplicateNames };
}

class Scan {
  hasDuplicateNames = false;
  #at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  value(without?: ReadonlySet<string>): string {
    this.#at = skipSpace(this.#text, this.#at);
    const first = this.#text[this.#at];
    if (first === '{') return `{${this.#members(without).join(',')}}`;
    if (first === '[') return `[${this.#upTo(']', () => this.value()).join(',')}]`;
    return first === '"' ? this.#string() : this.#cut(endOfScalar(this.#text, this.#at));
  }

  #members(without: ReadonlySet<string> | undefined): string[] {
    const members = new Map<string, string>();
    const all = this.#upTo('}', () => {
      const name = this.#string();
      this.#at = skipSpace(this.#text, this.#at) + 1; // the colon
      const member = `${name}:${this.value()}`;
      if (without?.has(stringAt(name))) return '';
      if (members.has(name)) this.hasDuplicateNames = true;
      members.set(name, member);
      return member;
    });
    return this.hasDuplicateNames
      ? all.filter((member) => member !== '')
      : [...members].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, member]) => member);
  }

  /** The items of an array or object. */
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
