import type { Standing, WriteEnded } from './shared/engine.ts';

/** Stands for everything of an account, among tags. */
const ALL = '*';

/** A write that was announced. Instants in milliseconds, of one clock. Plain data, which an engine can store. */
export interface Mark {
  readonly nonce: string;
  /** What it touches. */
  readonly tags: readonly string[];
  /** What it buys, hashed. */
  readonly purchase?: string | undefined;
  readonly hasKey: boolean;
  /** When its request is over. From then on its outcome is unknown, whether anybody said so or not. */
  readonly busyUntil: number;
  /** When the mark goes in any case. */
  readonly until: number;
  readonly isUnknown: boolean;
}

/** The writes of one account that are under way or of unknown outcome. */
export class Marks {
  #marks: readonly Mark[];

  constructor(marks: readonly Mark[] = []) {
    this.#marks = marks;
  }

  get all(): readonly Mark[] {
    return this.#marks;
  }

  /** Lets go of those whose time has passed; comes back with what they touched, which then needs new versions. */
  expire(now: number): readonly string[] {
    if (this.#marks.every(({ until }) => until > now)) return [];
    const over = this.#marks.filter(({ until }) => until <= now);
    this.#marks = this.#marks.filter(({ until }) => until > now);
    return over.flatMap(({ tags }) => tags);
  }

  /** Whether what has these tags may be neither answered from a copy nor kept. */
  covers(tags: readonly string[]): boolean {
    return this.#marks.some((mark) => mark.tags.some((tag) => tag === ALL || tags.includes(tag)));
  }

  find(nonce: string): Mark | undefined {
    return this.#marks.find((mark) => mark.nonce === nonce);
  }

  /** Where an equal purchase stands that this one may not follow: one with a key meets those without, one without all. */
  equalTo({ purchase, hasKey }: Pick<Mark, 'purchase' | 'hasKey'>, now: number): Standing | undefined {
    if (purchase === undefined) return undefined;
    const met = this.#marks.filter((mark) => mark.purchase === purchase && !(hasKey && mark.hasKey));
    if (met.length === 0) return undefined;
    return met.some(({ isUnknown, busyUntil }) => !isUnknown && busyUntil > now) ? 'under_way' : 'unknown';
  }

  /** Puts a mark in the place of the one with its nonce. */
  set(mark: Mark): void {
    this.#marks = [...this.#marks.filter(({ nonce }) => nonce !== mark.nonce), mark];
  }

  /**
   * Ends a write; says whether what it touched needs new versions. One of unknown outcome stays marked until its time,
   * and is marked again where its mark is missing.
   */
  end(end: WriteEnded['end'], mark: Omit<Mark, 'isUnknown'>): boolean {
    if (end === 'unknown') this.set({ ...(this.find(mark.nonce) ?? mark), isUnknown: true });
    else this.#marks = this.#marks.filter(({ nonce }) => nonce !== mark.nonce);
    return end !== 'not_sent';
  }
}
