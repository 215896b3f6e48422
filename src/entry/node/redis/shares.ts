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
  readonly all: readonly number[];
  /** Those whose last question was not answered. */
  readonly failing = new Set<number>();
  readonly #ids = new Map<number, Id>();
  /** No copy of such a share is used before the reply to a question sent later than this. */
  readonly #doubted = new Map<number, number>();

  constructor(count: number) {
    this.all = Array.from({ length: count }, (_, share) => share);
  }

  /** The share of an account. */
  of(account: string): number {
    let hash = 0;
    for (let i = 0; i < account.length; i++) hash = (Math.imul(hash, 31) + account.charCodeAt(i)) | 0;
    return (hash >>> 0) % this.all.length;
  }

  /** What is sent of a share's id with each question; the token is empty where it is not known. */
  idOf(share: number, now: number): { readonly token: string; readonly agoMs: number } {
    const { token, askedAt } = this.#ids.get(share) ?? { token: '', askedAt: now };
    return { token, agoMs: Math.ceil(now - askedAt) };
  }

  isDoubted(share: number): boolean {
    return this.#doubted.has(share);
  }

  /** From a reply. Returns the shares that have to be asked, since the id has changed. */
  learn(share: number, token: string, askedAt: number): readonly number[] {
    this.failing.delete(share);
    const before = this.#ids.get(share);
    if (before && before.askedAt > askedAt) return []; // overtaken by a later reply
    this.#ids.set(share, { token, askedAt });
    if ((this.#doubted.get(share) ?? askedAt) <= askedAt) this.#doubted.delete(share);
    if (!before || before.token === token || before.token === UNKNOWN) return [];
    this.#doubtNodes([nodeOf(before.token), nodeOf(token)], share);
    return [...this.#doubted.keys()];
  }

  /** A question was not answered. */
  missed(share: number): void {
    this.failing.add(share);
    const askedAt = this.#doubted.get(share);
    if (askedAt !== undefined) this.#ids.set(share, { token: UNKNOWN, askedAt });
  }

  /** The store of a share was replaced: so may be those of others on its old or new node. */
  #doubtNodes(nodes: readonly string[], except: number): void {
    const now = performance.now();
    for (const [share, { token }] of this.#ids)
      if (share !== except && nodes.includes(nodeOf(token))) this.#doubted.set(share, now);
  }
}
