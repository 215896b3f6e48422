interface Call<Item, Result> {
  readonly items: Item[];
  readonly results: Promise<readonly Result[]>;
}

/** Of one call, so that it takes the store no longer than others. */
const MOST_ITEMS = 16;

const nothing = () => undefined;

/**
 * Sends what is asked for together in one call: what comes in one turn of the event loop, and what comes while an earlier
 * call of the same name has no reply. (In one turn of microtasks nothing comes together, since values are sealed by threads.)
 */
export class Together<Item, Result> {
  readonly #send: (name: string, items: readonly Item[]) => Promise<readonly Result[]>;
  /** The last call of each name, until it is over. */
  readonly #last = new Map<string, Promise<void>>();
  /** Those that are not sent yet. */
  readonly #waiting = new Map<string, Call<Item, Result>>();

  /** `send` resolves with the results in the order of the items. */
  constructor(send: (name: string, items: readonly Item[]) => Promise<readonly Result[]>) {
    this.#send = send;
  }

  async add(name: string, item: Item): Promise<Result> {
    const waiting = this.#waiting.get(name);
    const { items, results } = waiting && waiting.items.length < MOST_ITEMS ? waiting : this.#begin(name);
    const place = items.push(item) - 1;
    return (await results)[place] as Result;
  }

  #begin(name: string): Call<Item, Result> {
    const before = this.#last.get(name) ?? new Promise<void>((resolve) => void setImmediate(resolve));
    const items: Item[] = [];
    const results = before.then(() => {
      if (this.#waiting.get(name) === call) this.#waiting.delete(name);
      return this.#send(name, items);
    });
    const call = { items, results };
    const over = results.then(nothing, nothing).then(() => {
      if (this.#last.get(name) === over) this.#last.delete(name);
    });
    this.#last.set(name, over);
    this.#waiting.set(name, call);
    return call;
  }
}
