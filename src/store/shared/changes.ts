import { type Clock, pause, stopwatch } from '../../core/runtime.ts';
import type { AccountId } from '../store.ts';

/** How long an instance may answer by what it has heard, from when it sent the question whose reply says that this is all. */
const CURRENT_MS = 130;

/** So long after a change was announced no instance answers by what was before: clocks may run 8 % fast or slow. */
export const KNOWN_MS = 160;

/** Accounts whose last change is remembered. */
const MAX_CHANGED = 1_024;

/** What each reply says: the token of the store's id, and the number of the last change of any account. */
export interface Numbered {
  readonly token: string;
  readonly number: number;
}

/** A change of an account, as the store tells it to all instances. */
export interface Announced extends Numbered {
  readonly account: AccountId;
}

/** A question on its way. */
export interface Sent {
  readonly at: number;
  /** Milliseconds since then. */
  readonly passed: () => number;
}

/** Whether its reply is too old to go by. */
const isOver = ({ passed }: Sent) => passed() >= CURRENT_MS;

/** Waits until no instance goes by what was before something that was announced so many milliseconds ago. */
export async function untilKnown(clock: Clock, sinceMs: number): Promise<void> {
  if (sinceMs < KNOWN_MS) await pause(clock, Math.ceil(KNOWN_MS - sinceMs)); // timers cut fractions off
}

/**
 * Why views are dropped: that of an account by its change; all by a number that is missing, by changes that never came, by
 * another store, and by one that was away.
 */
export const LOSSES = ['change', 'gap', 'unheard', 'another_store', 'away'] as const;

export type Loss = (typeof LOSSES)[number];

/** What was known of the account before the change with this number is no longer valid. Returns whether anything was. */
type OnChange = (account: AccountId, number: number) => boolean;

/**
 * What an instance has heard of the numbered changes of all accounts, and whether that is all (`docs/shared-state.md`).
 * Messages may be lost or late, and connections may be cut: a missing number shows it.
 */
export class Changes {
  /** Views made under another one are none. */
  generation = 0;
  /** Hits for which there was a view, since they were last looked at. */
  uses = 0;
  /** Those of them, in all, that had to ask the store, since not all changes were heard. */
  late = 0;
  readonly losses: Record<Loss, number> = { change: 0, gap: 0, unheard: 0, another_store: 0, away: 0 };
  readonly #clock: Pick<Clock, 'now' | 'wall'>;
  #onChange: OnChange = () => false;
  #token: string | undefined;
  /** All up to this number were heard. */
  #heard = 0;
  /** Replies with a lower number are from before the last loss. */
  #base = 0;
  /** Replies that number changes which were not heard yet; of each number the first question and the last. */
  #unheard: { readonly number: number; readonly first: Sent; last: Sent }[] = [];
  /** The last question whose reply counts. */
  #current: Sent | undefined;
  #listensSince = Infinity;
  readonly #changed = new Map<AccountId, number>();
  /** The highest number that is remembered no more. */
  #forgotten = 0;

  constructor(clock: Pick<Clock, 'now' | 'wall'>) {
    this.#clock = clock;
  }

  onChange(listener: OnChange): void {
    this.#onChange = listener;
  }

  /** Call it when a question is sent. */
  sent(): Sent {
    return { at: this.#clock.now(), passed: stopwatch(this.#clock) };
  }

  /** Whether all changes up to a moment ago were heard, so that views may be used. */
  isCurrent(): boolean {
    this.uses++;
    const isCurrent = this.#isCurrent;
    if (!isCurrent) this.late++;
    return isCurrent;
  }

  /** The channel is open from now on. */
  opened(): void {
    this.#listensSince = this.#clock.now();
  }

  /** What is known stays: a change that is missed meanwhile is told by its number. */
  closed(): void {
    this.#listensSince = Infinity;
  }

  get isListening(): boolean {
    return this.#listensSince < Infinity;
  }

  /** A reply has come. Returns whether changes before it were lost on their way. */
  answered({ token, number }: Numbered, sent: Sent): boolean {
    if (sent.at < this.#listensSince) return false;
    if (token !== this.#token) {
      this.#begin({ token, number }, sent, 'another_store');
      return false;
    }
    if (number <= this.#heard) {
      this.#extend(sent);
      return false;
    }
    if (!this.#isCurrent && this.#unheard[0] && isOver(this.#unheard[0].first)) {
      this.#begin({ token, number }, sent, 'unheard');
      return true;
    }
    const before = this.#unheard.at(-1);
    if (before?.number === number) before.last = sent;
    else this.#unheard.push({ number, first: sent, last: sent });
    return false;
  }

  /** Returns whether it was news. */
  heard({ token, number, account }: Announced): boolean {
    if (token !== this.#token) return false;
    const isNews = number > this.#heard;
    if (number > this.#heard + 1) {
      this.#lose('gap');
      this.#base = number;
    }
    this.#heard = Math.max(this.#heard, number);
    this.changed(account, { token, number });
    for (const { number: least, last } of this.#unheard) if (least <= this.#heard) this.#extend(last);
    this.#unheard = this.#unheard.filter(({ number: least }) => least > this.#heard);
    return isNews;
  }

  /** A change that this instance has made itself, by the reply to it. */
  changed(account: AccountId, { token, number }: Numbered): void {
    if (token !== this.#token) return;
    const last = Math.max(number, this.#changed.get(account) ?? 0);
    this.#changed.delete(account);
    this.#changed.set(account, last);
    if (this.#changed.size > MAX_CHANGED) this.#forgetOldest();
    if (this.#onChange(account, last)) this.losses.change++;
  }

  /** Whether what a reply says of an account is still so, as far as was heard. */
  holds(account: AccountId, { token, number }: Numbered): boolean {
    const isKnown = token === this.#token && number >= Math.max(this.#base, this.#forgotten);
    return isKnown && number >= (this.#changed.get(account) ?? 0);
  }

  /** Begins anew with the next reply. */
  forget(reason: Loss): void {
    if (this.#token === undefined) return;
    this.#lose(reason);
    this.#token = this.#current = undefined;
  }

  get #isCurrent(): boolean {
    return this.#current !== undefined && !isOver(this.#current);
  }

  #extend(sent: Sent): void {
    if (!this.#current || this.#current.at < sent.at) this.#current = sent;
  }

  #begin({ token, number }: Numbered, sent: Sent, reason: Loss): void {
    if (this.#token !== undefined) this.#lose(reason);
    this.#token = token;
    this.#heard = this.#base = number;
    this.#forgotten = 0;
    this.#changed.clear();
    this.#unheard = [];
    this.#current = sent;
  }

  #lose(reason: Loss): void {
    this.generation++;
    this.losses[reason]++;
  }

  #forgetOldest(): void {
    for (const [account, number] of this.#changed) {
      this.#changed.delete(account);
      this.#forgotten = Math.max(this.#forgotten, number);
      break;
    }
  }
}
