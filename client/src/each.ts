import type { Portico } from './client.ts';
import type { Calling } from './send.ts';
import type { CallOptions, Input, Item, ListId } from './types.ts';

interface Page<T> {
  readonly results: readonly T[];
  readonly next: string | null;
}

/**
 * Every entry of a list, page by page; a page is asked for when the one before is used up. All are of the account of the
 * first.
 */
export async function* each<Id extends ListId>(
  portico: Portico,
  id: Id,
  input?: Input<Id>,
  options?: CallOptions,
): AsyncGenerator<Item<Id>, void, undefined> {
  const read = portico[id] as unknown as (input?: object, options?: Calling) => Promise<Page<Item<Id>>>;
  const caller = {};
  let page = await read(input, { ...options, caller });
  for (;;) {
    yield* page.results;
    if (page.next === null) return;
    page = await read(undefined, { ...options, caller, query: queryIn(page.next) });
  }
}

/** Of the link to another page. Only its query: what host it names is not ours to trust with a key. */
export const queryIn = (link: string): string => link.slice(link.indexOf('?') + 1);
