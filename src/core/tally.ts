/** Names of which nothing is left are dropped together, when there are as many as this. */
const MANY = 10_000;

/**
 * Counts by name, for names that come and go with each request. In a plain `Map` of numbers such an entry is deleted and
 * set again each time: V8 makes new tables, which cost some 4 µs of a hit.
 */
export class Tally {
  readonly #entries = new Map<string, { count: number }>();

  of(name: string): number {
    return this.#entries.get(name)?.count ?? 0;
  }

  add(name: string, change: number): void {
    const entry = this.#entries.get(name) ?? this.#made(name);
    entry.count += change;
  }

  #made(name: string): { count: number } {
    if (this.#entries.size >= MANY)
      for (const [one, { count }] of this.#entries) if (count === 0) this.#entries.delete(one);
    const entry = { count: 0 };
    this.#entries.set(name, entry);
    return entry;
  }
}
