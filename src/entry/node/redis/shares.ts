import { NODE_LENGTH } from './lua.ts';

/** What an instance says of a share's id with each question. */
interface Said {
  /** Empty where it knows of none. */
  readonly token: string;
  readonly agoMs: number;
}

interface Heard {
  readonly token: string;
  /** When the question was asked that this answers: no later than it was true. */
  readonly at: number;
}

const nodeOf = (token: string) => token.slice(0, NODE_LENGTH);

/** Said where another id may have been there that was not heard. */
const UNHEARD = '?';

/** What this instance has heard last of the id of each share. Instants are of its own monotonic clock. */
export class Shares {
  readonly count: number;
  readonly #heard: (Heard | undefined)[];
  /** Since when an answer is needed before copies of the share are given again. */
  readonly #doubted = new Map<number, number>();

  constructor(count: number) {
    this.count = count;
    this.#heard = Array.from<undefined>({ length: count });
  }

  /** The share into which an account falls. */
  of(account: string): number {
    let hash = 0;
    for (let i = 0; i < account.length; i++) hash = (Math.imul(hash, 31) + account.charCodeAt(i)) | 0;
    return (hash >>> 0) % this.count;
  }

  say(share: number, now: number): Said {
    const { token, at } = this.#heard[share] ?? { token: '', at: now };
    return { token, agoMs: Math.ceil(now - at) };
  }

  doubted(): readonly number[] {
    return [...this.#doubted.keys()];
  }

  isDoubted(share: number): boolean {
    return this.#doubted.has(share);
  }

  /** Says whether others have to be asked, since this is another id than before. */
  hear(share: number, token: string, askedAt: number): boolean {
    const before = this.#heard[share];
    if (before && before.at > askedAt) return false; // overtaken by a later answer
    this.#heard[share] = { token, at: askedAt };
    if ((this.#doubted.get(share) ?? askedAt) <= askedAt) this.#doubted.delete(share);
    if (!before || before.token === token || before.token === UNHEARD) return false;
    this.#doubtNodes([nodeOf(before.token), nodeOf(token)], share);
    return this.#doubted.size > 0;
  }

  /** A doubted share was asked in vain. */
  miss(share: number): void {
    const at = this.#doubted.get(share);
    if (at !== undefined) this.#heard[share] = { token: UNHEARD, at };
  }

  /** A share has become another store: so may the others that were or are on its node. */
  #doubtNodes(nodes: readonly string[], but: number): void {
    const now = performance.now();
    for (const [share, heard] of this.#heard.entries())
      if (share !== but && heard && nodes.includes(nodeOf(heard.token))) this.#doubted.set(share, now);
  }
}
