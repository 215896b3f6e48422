import { NODE_LENGTH } from './lua.ts';

interface Id {
  readonly token: string;
  /** When the question was sent to which this is the reply. */
  readonly askedAt: number;
}

const nodeOf = (token: string) => token.slice(0, NODE_LENGTH);

/** Sent where another id may have been there meanwhile. */
const UNKNOWN = '?';

/** The id of each share in its last reply. Instants are of this process's monotonic clock. */
export class Shares {
  readonly count: number;
  readonly #ids: (Id | undefined)[];
  /** No copy of such a share is used before the reply to a question sent later than this. */
  readonly #doubted = new Map<number, number>();

  constructor(count: number) {
    this.count = count;
    this.#ids = Array.from<undefined>({ length: count });
  }

  /** The share of an account. */
  of(account: string): number {
    let hash = 0;
    for (let i = 0; i < account.length; i++) hash = (Math.imul(hash, 31) + account.charCodeAt(i)) | 0;
    return (hash >>> 0) % this.count;
  }

  /** What is sent of a share's id with each question; the token is empty where it is not known. */
  idOf(share: number, now: number): { readonly token: string; readonly agoMs: number } {
    const { token, askedAt } = this.#ids[share] ?? { token: '', askedAt: now };
    return { token, agoMs: Math.ceil(now - askedAt) };
  }

  doubted(): readonly number[] {
    return [...this.#doubted.keys()];
  }

  isDoubted(share: number): boolean {
    return this.#doubted.has(share);
  }

  /** Returns whether other shares have to be asked, since the id has changed. */
  learn(share: number, token: string, askedAt: number): boolean {
    const before = this.#ids[share];
    if (before && before.askedAt > askedAt) return false; // overtaken by a later reply
    this.#ids[share] = { token, askedAt };
    if ((this.#doubted.get(share) ?? askedAt) <= askedAt) this.#doubted.delete(share);
    if (!before || before.token === token || before.token === UNKNOWN) return false;
    this.#doubtNodes([nodeOf(before.token), nodeOf(token)], share);
    return this.#doubted.size > 0;
  }

  /** A question to a doubted share was not answered. */
  missed(share: number): void {
    const askedAt = this.#doubted.get(share);
    if (askedAt !== undefined) this.#ids[share] = { token: UNKNOWN, askedAt };
  }

  /** The store of a share was replaced: so may be those of others on its old or new node. */
  #doubtNodes(nodes: readonly string[], except: number): void {
    const now = performance.now();
    for (const [share, id] of this.#ids.entries())
      if (share !== except && id && nodes.includes(nodeOf(id.token))) this.#doubted.set(share, now);
  }
}
