import { ALL, MAX_TAGS } from '../../store/shared/engine.ts';
import type { Rows } from './rows.ts';

/**
 * The versions of one account's tags. As long as no copy is kept under them they are in memory only: who comes with a
 * made-up credential leaves nothing behind. An object that forgets them makes others, under which no old copy is kept.
 */
export class Versions {
  readonly #rows: Rows;
  #epoch: string = crypto.randomUUID();
  #tags: ReadonlyMap<string, string> = new Map();
  #isKept = false;

  constructor(rows: Rows) {
    this.#rows = rows;
    const [kept] = rows.all('versions');
    if (!kept) return;
    this.#epoch = kept.epoch;
    this.#tags = new Map(kept.tags);
    this.#isKept = true;
  }

  /** Of what has these tags. */
  of(tags: readonly string[]): string {
    return [this.#epoch, ...tags.map((tag) => this.#tags.get(tag) ?? '0')].join('.');
  }

  renew(tags: readonly string[]): void {
    const version = crypto.randomUUID();
    const renewed = new Map([...this.#tags, ...tags.map((tag) => [tag, version] as const)]);
    if (tags.includes(ALL) || renewed.size > MAX_TAGS) this.#beginAnew(version);
    else this.#tags = renewed;
    if (this.#isKept) this.#write();
  }

  /** From now on there are copies under them. */
  keep(): void {
    if (this.#isKept) return;
    this.#isKept = true;
    this.#write();
  }

  /** Nothing is kept any more. */
  forget(): void {
    this.#isKept = false;
    this.#beginAnew(crypto.randomUUID());
  }

  #beginAnew(epoch: string): void {
    this.#epoch = epoch;
    this.#tags = new Map();
    this.#rows.dropAll('copy');
  }

  #write(): void {
    this.#rows.put('versions', '', { facts: { epoch: this.#epoch, tags: [...this.#tags] } });
  }
}
