interface Place<T> {
  readonly item: T;
  at: number;
}

/**
 * What is under way, where it comes and goes by the thousand. A `Set` would do, but V8 makes it a new table every few
 * changes, and each old one keeps what it held until the next full collection: nothing of a request would be young
 * garbage any more.
 */
export class Bag<T> implements Iterable<T> {
  readonly #places: Place<T>[] = [];

  get size(): number {
    return this.#places.length;
  }

  /** Comes back with what takes it out again. */
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
