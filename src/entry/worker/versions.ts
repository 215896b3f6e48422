import { ALL, MAX_TAGS } from '../../store/shared/engine.ts';
import type { Rows } from './rows.ts';

/**
 * The versions of one account's tags. They are in memory only until the first copy is kept: made-up credentials leave
 * nothing in SQLite. An object that was evicted before that makes new ones.
 */
export class Versions {
  readonly #rows: Rows;
  #epoch: string = crypto.randomUUID();
  #tags: ReadonlyMap<string, string> = new Map();
  #isStored = false;

  constructor(rows: Rows) {
    this.#rows = rows;
    const [stored] = rows.all('versions');
    if (!stored) return;
    this.#epoch = stored.epoch;
    this.#tags = new Map(stored.tags);
    this.#isStored = true;
  }

  of(tags: readonly string[]): string {
    return [this.#epoch, ...tags.map((tag) => this.#tags.get(tag) ?? '0')].join('.');
  }

  renew(tags: readonly string[]): void {
    const version = crypto.randomUUID();
    const renewed = new Map([...this.#tags, ...tags.map((tag) => [tag, version] as const)]);
    if (tags.includes(ALL) || renewed.size > MAX_TAGS) this.#renewAll(version);
    else this.#tags = renewed;
    if (this.#isStored) this.#write();
  }

  /** Called before the first copy is kept. */
  store(): void {
    if (this.#isStored) return;
    this.#isStored = true;
    this.#write();
  }

  /** Called when all rows are deleted. */
  forget(): void {
    this.#isStored = false;
    this.#renewAll(crypto.randomUUID());
  }

  #renewAll(epoch: string): void {
    this.#epoch = epoch;
    this.#tags = new Map();
    this.#rows.dropAll('copy');
  }

  #write(): void {
    this.#rows.put('versions', '', { facts: { epoch: this.#epoch, tags: [...this.#tags] } });
  }
}
