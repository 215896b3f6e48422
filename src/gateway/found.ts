import { cut, itemsOf, memberOf, type Span, stringAt } from '../core/json.ts';
import type { Entry } from '../store/port.ts';

/** What copies say of a section whose id another one names. A copy never changes, so each is searched once. */
export class Found {
  readonly #member: string;
  readonly #ids = new WeakMap<Entry, string | undefined>();
  readonly #items = new WeakMap<Entry, { readonly id: string; readonly item: string | undefined }>();

  /** `member`: of the section that names the id. */
  constructor(member: string) {
    this.#member = member;
  }

  /** Undefined if it names none. */
  idIn(base: Entry): string | undefined {
    if (this.#ids.has(base)) return this.#ids.get(base);
    const span = memberOf(base.text, this.#member);
    const id = span && cut(base.text, span) !== 'null' ? idAt(base.text, span) : undefined;
    this.#ids.set(base, id);
    return id;
  }

  /** The item with this id, out of a page. */
  itemIn(list: Entry, id: string): string | undefined {
    const searched = this.#items.get(list);
    if (searched?.id === id) return searched.item;
    const results = memberOf(list.text, 'results');
    const items = results ? itemsOf(list.text, results.start).map((span) => cut(list.text, span)) : [];
    const item = items.find((one) => {
      const span = memberOf(one, 'id');
      return span && idAt(one, span) === id;
    });
    this.#items.set(list, { id, item });
    return item;
  }
}

/** An id as text, since it may be beyond 2^53. Empty where it is neither a text nor an integer. */
function idAt(text: string, span: Span): string {
  if (text[span.start] === '"') return stringAt(text, span);
  const literal = cut(text, span);
  return /^\d+$/.test(literal) ? literal : '';
}
