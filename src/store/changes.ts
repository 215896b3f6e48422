import { type Clock, pause, type WaitUntil, within } from '../core/runtime.ts';
import type { Account, Looked } from './account.ts';
import type { Backend, Next } from './backend.ts';
import { type Change, type Held, lifeOf, type Note } from './note.ts';

/** Pauses between attempts to tell the store. */
const FIRST_PAUSE_MS = 50;
const MOST_PAUSE_MS = 2_000;
/**
 * A change that is not over by then may never be: the platform of Workers stops a request with all that it waits for, its
 * timers too. So the next one has a timer of its own.
 */
const MOST_MS = 10_000;

/** What a change comes to: another note, or the reason why there is none. */
export type Decide<T> = (note: Note, held: Held | undefined, now: number) => Change | T;

interface ChangeOptions {
  /** The idempotency key whose record is read and changed with the note, and how long that is kept. */
  readonly key?: string | undefined;
  readonly keyMs?: number;
  readonly isBeginning?: boolean;
  /** Asked when its turn has come, and before the store is asked to change the note, which is then next. */
  readonly isWanted?: (isNext: boolean) => boolean;
}

/** Changes notes by compare-and-set. Those of one account are made one after the other: others are rarely faster then. */
export class Changes {
  readonly #backend: Backend;
  readonly #clock: Clock;
  /** Changes so far. */
  #count = 0;
  /** What the store has not been told yet. */
  pending = 0;

  constructor(backend: Backend, clock: Clock) {
    this.#backend = backend;
    this.#clock = clock;
  }

  /** After the changes of the account that were asked for before. Undefined where it is not wanted any more. */
  make<T>(account: Account, decide: Decide<T>, options: ChangeOptions = {}): Promise<Change | T | 'full' | undefined> {
    const nth = ++this.#count;
    const change = () => {
      const made = this.#make(account, decide, options, nth);
      return this.#backend.isHere ? made : within(this.#clock, MOST_MS, made);
    };
    const last = account.lastChange;
    const turn = last && (this.#backend.isHere ? last : within(this.#clock, MOST_MS, last).catch(() => undefined));
    const done = turn?.then(change) ?? change();
    const over = done.catch(() => undefined);
    account.lastChange = over;
    void over.then(() => {
      if (account.lastChange === over) account.lastChange = account.lastLook = undefined;
    });
    return done;
  }

  async #look(account: Account, key: string | undefined): Promise<Looked> {
    const at = this.#count;
    const looked = await this.#backend.look(account, [], key);
    if (key !== undefined) account.lastLook = { key, looked, at };
    return looked;
  }

  /** Tries until the store knows it, or the time is over. Resolves with whether it does. Never rejects. */
  tell(waitUntil: WaitUntil, change: () => Promise<unknown>, until: number): Promise<boolean> {
    this.pending++;
    const told = this.#try(change, until).finally(() => this.pending--);
    waitUntil(told);
    return told;
  }

  async #try(change: () => Promise<unknown>, until: number): Promise<boolean> {
    for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(2 * ms, MOST_PAUSE_MS)) {
      const isTold = await change().then(
        () => true,
        () => false,
      );
      if (isTold || this.#clock.now() >= until) return isTold;
      await pause(this.#clock, ms);
    }
  }

  /**
   * Reads, decides and replaces; again where somebody was faster. The note that was seen last is tried first, but where a
   * record has to be read at the same moment.
   */
  async #make<T>(
    account: Account,
    decide: Decide<T>,
    options: ChangeOptions,
    nth: number,
  ): Promise<Change | T | 'full' | undefined> {
    const { key, keyMs = 0, isBeginning, isWanted } = options;
    const backend = this.#backend;
    if (isWanted?.(false) === false) return undefined;
    const look = account.lastLook;
    const shared = look?.key === key && look && look.at >= nth ? look.looked : undefined;
    for (let known = shared ?? (key === undefined ? backend.peek(account) : undefined); ; known = undefined) {
      const looked: Looked = known ?? (await this.#look(account, key));
      const now = backend.now();
      const decided = decide(looked.note, looked.held, now);
      if (!isChange(decided)) {
        if (known && known !== shared && !backend.isHere) continue; // the note may be another one meanwhile
        return decided;
      }
      const lifeMs = lifeOf(decided.note, backend.noteMs, now);
      const record = key === undefined ? undefined : recordOf(key, decided, keyMs);
      if (isWanted?.(true) === false) return undefined;
      const swapped = await backend.swap(account, looked, { note: decided.note, lifeMs, record, isBeginning });
      account.lastLook = undefined;
      if (swapped === 'full') return 'full';
      if (swapped === 'done') return decided;
    }
  }
}

export const isChange = (decided: unknown): decided is Change =>
  typeof decided === 'object' && decided !== null && 'note' in decided;

const recordOf = (key: string, { held }: Change, lifeMs: number): Next['record'] =>
  held === undefined ? undefined : { key, held, lifeMs: Math.max(1, lifeMs) };
