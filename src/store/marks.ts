import type { WriteEnded } from './shared/engine.ts';
import { EVERYTHING, type OpenState } from './store.ts';

/** A write that is under way or of unknown outcome, as objects store it. Instants in milliseconds of one clock. */
export interface Mark {
  readonly nonce: string;
  /** What it invalidates. */
  readonly tags: readonly string[];
  /** Hash of what it buys. */
  readonly purchase?: string | undefined;
  readonly hasKey: boolean;
  /** When its request is over. From then on its outcome is unknown, reported or not. */
  readonly busyUntil: number;
  /** When the mark expires. */
  readonly until: number;
  /** By a clock that may be set back. */
  readonly setAt?: number | undefined;
  readonly isUnknown: boolean;
}

/** The marks of one account. */
export class Marks {
  #marks: readonly Mark[];

  constructor(marks: readonly Mark[] = []) {
    this.#marks = marks;
  }

  get all(): readonly Mark[] {
    return this.#marks;
  }

  /** Removes those that have expired. Returns their tags, which then need new versions. */
  expire(now: number): readonly string[] {
    if (this.#marks.every(({ until }) => until > now)) return [];
    const over = this.#marks.filter(({ until }) => until <= now);
    this.#marks = this.#marks.filter(({ until }) => until > now);
    return over.flatMap(({ tags }) => tags);
  }

  /** A mark from later than now, of before the clock was set back, stands for its whole time from now on. Returns those. */
  setBack(now: number): readonly Mark[] {
    const later = this.#marks.filter(({ setAt = now }) => setAt > now);
    if (later.length === 0) return later;
    const set = later.map((mark) => {
      const ahead = (mark.setAt ?? now) - now;
      return { ...mark, busyUntil: mark.busyUntil - ahead, until: mark.until - ahead, setAt: now };
    });
    for (const mark of set) this.set(mark);
    return set;
  }

  /** Whether no copy with these tags may be used or kept. */
  covers(tags: readonly string[]): boolean {
    return this.#marks.some((mark) => mark.tags.some((tag) => tag === EVERYTHING || tags.includes(tag)));
  }

  find(nonce: string): Mark | undefined {
    return this.#marks.find((mark) => mark.nonce === nonce);
  }

  /** The state of an equal purchase. Two that both have a key are not equal: the key is what tells them apart. */
  equalTo({ purchase, hasKey }: Pick<Mark, 'purchase' | 'hasKey'>, now: number): OpenState | undefined {
    if (purchase === undefined) return undefined;
    const equal = this.#marks.filter((mark) => mark.purchase === purchase && !(hasKey && mark.hasKey));
    if (equal.length === 0) return undefined;
    return equal.some(({ isUnknown, busyUntil }) => !isUnknown && busyUntil > now) ? 'under_way' : 'unknown';
  }

  /** Adds a mark, or replaces that with its nonce. */
  set(mark: Mark): void {
    this.#marks = [...this.#marks.filter(({ nonce }) => nonce !== mark.nonce), mark];
  }

  /** Ends a write; returns whether its tags need new versions. One of unknown outcome has a mark until that expires. */
  end(end: WriteEnded['end'], mark: Mark): boolean {
    if (end === 'unknown') this.set({ ...(this.find(mark.nonce) ?? mark), isUnknown: true });
    else this.#marks = this.#marks.filter(({ nonce }) => nonce !== mark.nonce);
    return end !== 'not_sent';
  }
}
