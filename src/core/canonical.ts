import { endOfScalar, endOfString, skipSpace, stringAt } from './json.ts';

/**
 * The canonical form, which JSON texts with the same meaning share: members sorted by name, no space, strings escaped in one
 * way. Numbers stay as they are written: parsed, two different ones could become equal. `without`: members of the outermost
 * object to leave out. The text has to be valid JSON that is not deep. It is read once, since a client may send a long one.
 */
export function canonical(text: string, without?: ReadonlySet<string>): string {
  return new Scan(text).value(without);
}

class Scan {
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
    const members = this.#upTo('}', () => {
      const name = this.#string();
      this.#at = skipSpace(this.#text, this.#at) + 1; // the colon
      return [name, this.value()] as const;
    });
    const last = [...new Map(members)]; // of a name that stands twice the last counts, as for JSON.parse
    const kept = without ? last.filter(([name]) => !without.has(stringAt(name))) : last;
    return kept.toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([name, value]) => `${name}:${value}`);
  }

  /** The items of an array or object. */
  #upTo<T>(closing: string, item: () => T): T[] {
    const items: T[] = [];
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
