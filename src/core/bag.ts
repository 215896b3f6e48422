interface Place<T> {
  readonly item: T;
  at: number;
}

/**
 * A set of things under way, made for thousands of changes. With a `Set`, V8 makes a new table every few changes, and
 * the old tables keep their items until the next full collection, so that no request would be collected young.
 */
export class Bag<T> implements Iterable<T> {
  readonly #places: Place<T>[] = [];

  get size(): number {
    return this.#places.length;
  }

  /** Returns a function that removes the item. */
  add(item: T): () => void {
    const place = { item, at: this.#places.length };
    this.#places.push(place);
    return () => {
      if (this.#places[place.at] !== place) return;
      const last = this.#places.pop();
      if (!last || last === place) return;
      this.#places[place.at] = last;
      last.at = place.at;
    };
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const { item } of this.#places.slice()) yield item;
  }
}
