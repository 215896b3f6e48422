import { recent } from '../bounded.ts';
import type { Copies, Copy } from '../copies.ts';
import { type AccountId, type Entry, freshFor, type SessionState, type SnapshotRequest } from '../store.ts';
import type { Changes, Numbered } from './changes.ts';

const MAX_VIEWS = 100_000;
const VIEW_MS = 60_000;
const MAX_SESSIONS = 16;

/** What the store has said of an account, in one reply or in several between which nothing has changed. */
export interface View {
  /** Of the earliest of those replies. */
  number: number;
  readonly generation: number;
  readonly until: number;
  readonly sessions: Map<string, SessionState>;
}

/** What answers a request without a question: the copies of its keys, in the same order. */
export interface Known {
  readonly entries: readonly Entry[];
  readonly session: SessionState | undefined;
}

/** The views of accounts. Those copies may be given under one that it has confirmed. */
export class Views {
  /** Hits that asked nobody. */
  hits = 0;
  readonly #changes: Changes;
  readonly #copies: Copies;
  readonly #views = recent<AccountId, View>(MAX_VIEWS);

  constructor(changes: Changes, copies: Copies) {
    this.#changes = changes;
    this.#copies = copies;
    changes.onChange((account, number) => this.#dropBefore(account, number));
  }

  /** Undefined where the store has to be asked: for all but fresh copies, and sessions of which it was asked before. */
  known({ account, keys = [], session, now }: SnapshotRequest): Known | undefined {
    const view = this.#valid(account, now);
    const state = session && view?.sessions.get(session.id);
    if (!view || (session && !state)) return undefined;
    const entries: Entry[] = [];
    for (const key of keys) {
      const copy = this.#copies.get(key);
      if (copy?.view !== view || copy.entry.storedAt + freshFor(copy.entry, key.freshMs) <= now) return undefined;
      entries.push(copy.entry);
    }
    return this.#changes.isCurrent() ? { entries, session: state } : undefined;
  }

  /** The view of an account after a reply; none if something has changed since. */
  learn(account: AccountId, numbered: Numbered | undefined, now: number): View | undefined {
    if (!numbered || !this.#changes.holds(account, numbered)) return undefined;
    const { generation } = this.#changes;
    const { number } = numbered;
    let view = this.#valid(account, now);
    if (view) view.number = Math.min(view.number, number);
    else this.#views.set(account, (view = { number, generation, until: now + VIEW_MS, sessions: new Map() }));
    return view;
  }

  learnSession(view: View, id: string, state: SessionState): void {
    if (view.sessions.size >= MAX_SESSIONS) view.sessions.clear();
    view.sessions.set(id, state);
  }

  /** The store has kept a copy whose version it gave under this view. */
  confirm(account: AccountId, view: View | undefined, copy: Copy | undefined, now: number): void {
    if (copy && view && this.#valid(account, now) === view) copy.view = view;
  }

  drop(account: AccountId): void {
    this.#views.delete(account);
  }

  #valid(account: AccountId, now: number): View | undefined {
    const view = this.#views.get(account);
    return view && view.generation === this.#changes.generation && view.until > now ? view : undefined;
  }

  #dropBefore(account: AccountId, number: number): boolean {
    const view = this.#views.peek(account);
    return view !== undefined && view.number < number && this.#views.delete(account);
  }
}
