interface Waiting<Item, Result> {
  readonly items: Item[];
  readonly sent: Promise<readonly Result[]>;
}

/** Sends what is asked for at the same moment for one name in one call. */
export class Together<Item, Result> {
  readonly #send: (name: string, items: readonly Item[]) => Promise<readonly Result[]>;
  readonly #waiting = new Map<string, Waiting<Item, Result>>();

  /** `send` resolves with the results in the order of the items. */
  constructor(send: (name: string, items: readonly Item[]) => Promise<readonly Result[]>) {
    this.#send = send;
  }

  async add(name: string, item: Item): Promise<Result> {
    const { items, sent } = this.#waiting.get(name) ?? this.#begin(name);
    const place = items.push(item) - 1;
    return (await sent)[place] as Result;
  }

  #begin(name: string): Waiting<Item, Result> {
    const items: Item[] = [];
    const sent = new Promise<void>((resolve) => void setImmediate(resolve)).then(() => {
      this.#waiting.delete(name);
      return this.#send(name, items);
    });
    const waiting = { items, sent };
    this.#waiting.set(name, waiting);
    return waiting;
  }
}
