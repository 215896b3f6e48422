/** Two for each character: a text may hold characters beyond Latin-1. */
const sizeOf = (text: string) => 2 * text.length;

/** The last texts that were added: so many at most, and so many bytes. */
export class Ring {
  readonly #most: number;
  readonly #mostBytes: number;
  readonly #texts: string[] = [];
  #bytes = 0;
  #added = 0;

  constructor(most: number, mostBytes: number) {
    this.#most = most;
    this.#mostBytes = mostBytes;
  }

  /** How many have been added so far. */
  get added(): number {
    return this.#added;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(text: string): void {
    this.#texts.push(text);
    this.#bytes += sizeOf(text);
    this.#added++;
    while (this.#texts.length > this.#most || this.#bytes > this.#mostBytes)
      this.#bytes -= sizeOf(this.#texts.shift() ?? '');
  }

  /** What is left of those behind the first `count` that were added, the oldest first. */
  since(count: number): readonly string[] {
    return this.#texts.slice(Math.max(0, this.#texts.length - (this.#added - count)));
  }
}
