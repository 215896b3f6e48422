import { ALL, MAX_TAGS } from '../../store/shared/remote.ts';
import type { Shelf } from './shelf.ts';

/**
 * The versions of one account's tags. As long as nothing is kept under them they are in memory only: who comes with a
 * made-up credential leaves nothing behind.
 */
export class Versions {
  readonly #shelf: Shelf;
  #epoch: string = crypto.randomUUID();
  readonly #versions = new Map<string, string>();
  #isKept = false;

  constructor(shelf: Shelf) {
    this.#shelf = shelf;
    const kept = shelf.versions();
    if (!kept) return;
    this.#epoch = kept.epoch;
    for (const [tag, version] of kept.tags) this.#versions.set(tag, version);
    this.#isKept = true;
  }

  of(tags: readonly string[]): string {
    return [this.#epoch, ...tags.map((tag) => this.#versions.get(tag) ?? '0')].join('.');
  }

  touch(tags: readonly string[]): void {
    const version = crypto.randomUUID();
    for (const tag of tags) this.#versions.set(tag, version);
    if (tags.includes(ALL) || this.#versions.size > MAX_TAGS) this.#renew(version);
    if (this.#isKept) this.#shelf.keepVersions(this.#epoch, this.#versions);
  }

  /** From now on something is kept under them. */
  keep(): void {
    if (this.#isKept) return;
    this.#isKept = true;
    this.#shelf.keepVersions(this.#epoch, this.#versions);
  }

  /** The shelf is empty. */
  forget(): void {
    this.#isKept = false;
    this.#renew(crypto.randomUUID());
  }

  #renew(epoch: string): void {
    this.#epoch = epoch;
    this.#versions.clear();
  }
}
