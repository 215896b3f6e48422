/** Items of one call at most, so that it takes the store no longer than others. */
const MOST = 16;

/** What waits until the calls before it are over. */
interface Waiting<Item, Result> {
  readonly items: Item[];
  readonly results: Promise<readonly Result[]>;
}

/** Sends in one call what is asked for while an earlier one of the same name has no reply. */
export class Together<Item, Result> {
  readonly #send: (name: string, items: readonly Item[]) => Promise<readonly Result[]>;
  /** Of each name, until the last call is over. */
  readonly #ends = new Map<string, Promise<unknown>>();
  readonly #waiting = new Map<string, Waiting<Item, Result>>();

  /** `send` resolves with the results in the order of the items. */
  constructor(send: (name: string, items: readonly Item[]) => Promise<readonly Result[]>) {
    this.#send = send;
  }

  async add(name: string, item: Item): Promise<Result> {
    const before = this.#ends.get(name);
    if (!before) return (await this.#followed(name, this.#send(name, [item])))[0] as Result;
    let waiting = this.#waiting.get(name);
    if (!waiting || waiting.items.length >= MOST) waiting = this.#wait(name, before);
    const place = waiting.items.push(item) - 1;
    return (await waiting.results)[place] as Result;
  }

  #wait(name: string, before: Promise<unknown>): Waiting<Item, Result> {
    const items: Item[] = [];
    const results = before.then(() => {
      if (this.#waiting.get(name) === waiting) this.#waiting.delete(name);
      return this.#send(name, items);
    });
    const waiting = { items, results: this.#followed(name, results) };
    this.#waiting.set(name, waiting);
    return waiting;
  }

  /** What comes later waits for its end. */
  #followed(name: string, results: Promise<readonly Result[]>): Promise<readonly Result[]> {
    const over = () => {
      if (this.#ends.get(name) === end) this.#ends.delete(name);
    };
    const end = results.then(over, over);
    this.#ends.set(name, end);
    return results;
  }
}
