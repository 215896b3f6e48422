import { EVERYTHING, type Tag, type Version } from './store.ts';

const NONE: ReadonlyMap<Tag, string> = new Map();

/** The versions of one account's tags. Each is random, so that none ever comes back. */
export class Versions {
  #epoch: string;
  #tags: ReadonlyMap<Tag, string>;

  /** `facts`: of an earlier instance. */
  constructor(facts?: Versions['facts']) {
    this.#epoch = facts?.epoch ?? crypto.randomUUID();
    this.#tags = facts ? new Map(facts.tags) : NONE;
  }

  of(tags: readonly Tag[]): Version {
    return [this.#epoch, ...tags.map((tag) => this.#tags.get(tag) ?? '0')].join('.');
  }

  /** With more than `max` tags all are renewed. Returns whether they were. */
  renew(tags: readonly Tag[], max: number): boolean {
    const version = crypto.randomUUID();
    const renewed = new Map([...this.#tags, ...tags.map((tag) => [tag, version] as const)]);
    const isAll = tags.includes(EVERYTHING) || renewed.size > max;
    if (isAll) this.#epoch = version;
    this.#tags = isAll ? NONE : renewed;
    return isAll;
  }

  get facts(): { readonly epoch: string; readonly tags: readonly (readonly [Tag, string])[] } {
    return { epoch: this.#epoch, tags: [...this.#tags] };
  }
}
