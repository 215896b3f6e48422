import * as z from 'zod/mini';
import { memberOf, type Span } from '../core/json.ts';
import { documented, integer, resource, text } from './fields.ts';

/** Where an answer that is a page of a list has its parts, as JSON Pointers (RFC 6901) such as `/links/next`. */
export interface Page {
  /** Its items; empty where the answer itself is the list. */
  readonly items: string;
  /** The link to the next page. What is a token and no link is not named here. Without it, a `Link` header has the links. */
  readonly next?: string;
  /** Links to other pages. All of them then lead through the gateway. */
  readonly links?: readonly string[];
  /** The query parameter for the number of items, which overviews take as `page_size[…]`. */
  readonly size?: string;
}

/** Nothing is looked for at a number, that is, in a list. */
const POINTER = /^(?:\/(?!\d+(?:\/|$))[^/~]+)*$/;

const MEMBERS: ReadonlySet<string> = new Set(['items', 'next', 'links', 'size']);

export const namesOf = (pointer: string): readonly string[] => pointer.split('/').slice(1);

/** The place of the items in a page's text; undefined if there is none. */
export function itemsAt(page: string, { items }: Page): Span | undefined {
  let place: Span | undefined = { start: 0, end: page.length };
  for (const name of namesOf(items)) place = place && memberOf(page, name, place.start);
  return place;
}

type Schema = z.core.$ZodType;

/** The schema of the items of a page, or of an answer that is none. */
export function itemOf(answer: Schema | null, page?: Page): Schema | undefined {
  let schema = answer ?? undefined;
  for (const name of namesOf(page?.items ?? '')) schema = shapeOf(schema)[name];
  const def = defOf(schema);
  return def?.type === 'array' ? def.element : page ? undefined : schema;
}

/** The fields of an object. */
export function shapeOf(schema: Schema | undefined): z.core.$ZodShape {
  const def = defOf(schema);
  return def?.type === 'object' ? def.shape : {};
}

/** Of what is there where it is optional, or may be null. */
function defOf(schema: Schema | undefined): z.core.$ZodTypes['_zod']['def'] | undefined {
  const def = (schema as z.core.$ZodTypes | undefined)?._zod.def;
  if (def?.type === 'lazy') return defOf(def.getter());
  return def && 'innerType' in def ? defOf(def.innerType) : def;
}

/** What is wrong with a page, after the name of its row; undefined if nothing is. */
export function pageFlaw(answer: Schema | null, page: Page): string | undefined {
  const { items, next = '', links = [] } = page;
  const strange = Object.keys(page).find((one) => !MEMBERS.has(one));
  if (strange !== undefined) return `has a page with \`${strange}\`, which no page has`;
  const wrong = [items, next, ...links].find((one) => !POINTER.test(one));
  if (wrong !== undefined) return `has a page with \`${wrong}\`, which is no JSON Pointer such as \`/links/next\``;
  return itemOf(answer, page) ? undefined : `is a page whose answer has no list at \`${items}\``;
}

const pageUrl = (description: string) => documented(z.nullable(z.string()), { description, examples: [null] });

const next = pageUrl('URL of the next page');
const previous = z.optional(pageUrl('URL of the previous page'));

/** Pages as many upstreams have them. */
const shapesOf = <T extends z.ZodMiniType>(item: T, name: string) => ({
  results: () => ({
    answer: resource(`${name}Page`, {
      count: integer('number of items in all pages', 1),
      next,
      previous,
      results: z.array(item),
    }),
    page: { items: '/results', next: '/next', links: ['/previous'], size: 'page_size' },
  }),
  data: () => ({
    answer: resource(`${name}DataPage`, {
      data: z.array(item),
      links: z.looseObject({ next: z.optional(next), prev: previous }),
    }),
    page: { items: '/data', next: '/links/next', links: ['/links/prev', '/links/first', '/links/last', '/links/self'] },
  }),
  items: () => ({
    answer: resource(`${name}ItemsPage`, {
      items: z.array(item),
      nextPageToken: z.optional(text('of the next page', 'CAUQAA')),
    }),
    page: { items: '/items' },
  }),
  list: () => ({ answer: documented(z.array(item), { id: `${name}List` }), page: { items: '' } }),
});

/** A name in the document is one schema: what was made for an item is given again. */
const made = new WeakMap<z.ZodMiniType, Record<string, unknown>>();

type Shapes<T extends z.ZodMiniType> = ReturnType<typeof shapesOf<T>>;

/**
 * Answer and page of a list: `results` with `next` and `previous`, `data` with `links`, `items` with `nextPageToken`, or a
 * plain `list`, whose links are in the `Link` header.
 * @throws TypeError for items without a name, as `resource` gives one
 */
export function pageOf<T extends z.ZodMiniType, S extends keyof Shapes<T> = 'results'>(item: T, shape?: S) {
  const name = z.globalRegistry.get(item)?.id;
  if (name === undefined) throw new TypeError('the items of a page need a name: make them with resource()');
  const pages = made.get(item) ?? {};
  made.set(item, pages);
  const wanted = shape ?? 'results';
  return (pages[wanted] ??= shapesOf(item, name)[wanted]()) as ReturnType<Shapes<T>[S]>;
}
