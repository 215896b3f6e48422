import type { Reader } from '../cache/reader.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Clock } from '../core/runtime.ts';
import type { AccountId, CacheKey, Store, Version } from '../store/store.ts';

/** Requests that may wait for a change at once. */
const MOST = 5_000;
const MOST_OF_ACCOUNT = 4;

/** How often is asked for what is not kept. */
const POLL_MS = 2_000;
/** How often the store is asked for an account where nobody tells of changes, and how often its waits look what it has said. */
const ASK_MS = 1_000;
const LOOK_MS = 500;
/** Between two readings, whatever else is due. */
const LEAST_MS = 250;
/** How soon after a failure of the upstream it is asked again, at least and at most. */
const RETRY_MS = [2_000, 10_000] as const;

/** What ends a pause early. `left`: its client is gone. `over`: the process ends. */
type Happening = 'changed' | 'left' | 'over';

/** Why a wait goes on. */
type Woken = 'time' | Happening;

interface Tools {
  readonly store: Pick<Store, 'onChange' | 'hears' | 'snapshot'>;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'watch'>;
  /** Whether a request may wake another one, which Workers do not let it. */
  readonly wakesOthers?: boolean | undefined;
  /** Aborted when the process ends. */
  readonly ending?: AbortSignal | undefined;
}

/** The versions of cache keys, as the store has said them. */
type Versions = ReadonlyMap<string, Version>;

/** In the place of a key's version while a write hides it: the store says another one each time then. */
const HIDDEN: Version = 'hidden';

async function versionsOf({ snapshot, keys }: Pick<Reader, 'snapshot' | 'keys'>, now: number): Promise<Versions> {
  const versions = new Map<string, Version>();
  for (const key of keys) {
    const { isHidden, version } = await snapshot.lookup(key, now);
    versions.set(key.key, isHidden ? HIDDEN : version);
  }
  return versions;
}

/** The requests of an account that may wait. `placed`: those that do. */
class Waiters extends Set<Wait> {
  readonly placed = new Set<Wait>();
  askedAt = -Infinity;
  said: Versions = new Map();
}

/** The requests that wait for a change of what they have read. */
export class Waiting {
  readonly #tools: Tools;
  readonly #waits = new Map<AccountId, Waiters>();
  #size = 0;

  constructor(tools: Tools) {
    const { store, metrics, ending } = tools;
    this.#tools = tools;
    store.onChange(
      (account) => this.#changed(account),
      () => this.#waits.size > 0,
    );
    metrics.watch('waits', () => this.#size);
    ending?.addEventListener('abort', () => this.#all((wait) => wait.wake('over')));
  }

  /** From now on it is told of changes, until it is ended. It takes no place yet: nobody knows whether it has to wait. */
  begin(account: AccountId): Wait {
    const { clock } = this.#tools;
    const own = this.#waits.get(account) ?? new Waiters();
    const isTold = () => this.#tools.wakesOthers === true && this.#tools.store.hears();
    const said = (reader: Reader) => this.#said(own, reader);
    const takePlace = () => this.#takePlace(own, wait);
    const wait = new Wait(account, { clock, isTold, said, takePlace, leave: () => this.#leave(account, wait) });
    this.#waits.set(account, own.add(wait));
    return wait;
  }

  #takePlace({ placed }: Waiters, wait: Wait): boolean {
    if (this.#size >= MOST || placed.size >= MOST_OF_ACCOUNT || this.#tools.ending?.aborted) return false;
    placed.add(wait);
    this.#size++;
    return true;
  }

  /** One question for all that the account's requests wait for. Whoever comes within a second goes by the last answer. */
  async #said(own: Waiters, { account, owner, context }: Reader): Promise<Versions> {
    const { clock, store } = this.#tools;
    const now = clock.now();
    if (now - own.askedAt < ASK_MS) return own.said;
    own.askedAt = now;
    const byName = new Map<string, CacheKey>();
    for (const { reader } of own) for (const key of reader?.keys ?? []) byName.set(key.key, key);
    const keys = [...byName.values()];
    const { waitUntil } = context;
    const snapshot = await store.snapshot({ account, owner, now, window: undefined, keys, waitUntil });
    return (own.said = await versionsOf({ snapshot, keys }, now));
  }

  #leave(account: AccountId, wait: Wait): void {
    const own = this.#waits.get(account);
    if (!own?.delete(wait)) return;
    if (own.placed.delete(wait)) this.#size--;
    if (own.size === 0) this.#waits.delete(account);
  }

  #changed(account: AccountId | undefined): void {
    if (!this.#tools.wakesOthers) return;
    if (account === undefined) return this.#all((wait) => wait.wakeInTurn());
    for (const wait of this.#waits.get(account) ?? []) wait.wake('changed');
  }

  #all(run: (wait: Wait) => void): void {
    for (const own of this.#waits.values()) for (const wait of own) run(wait);
  }
}

interface WaitTools {
  readonly clock: Clock;
  readonly isTold: () => boolean;
  readonly said: (reader: Reader) => Promise<Versions>;
  readonly takePlace: () => boolean;
  readonly leave: () => void;
}

/** What a request waits by. */
export class Wait {
  readonly #tools: WaitTools;
  /** So that all that wait for the same ask at the same moment, and accounts one after another. */
  readonly #phase: number;
  /** What has happened and was not told yet; that its client has left, or the process ends, for good. */
  #woken: Happening | undefined;
  #goOn: (() => void) | undefined;
  /** Who has read what it waits for; undefined while that reading did not know yet what depends on what. */
  reader: Reader | undefined;

  constructor(account: AccountId, tools: WaitTools) {
    this.#tools = tools;
    this.#phase = Array.from(account, (char) => char.charCodeAt(0)).reduce(
      (sum, code) => (sum * 31 + code) % POLL_MS,
      0,
    );
  }

  /** Takes a place until the wait is ended; false where there is none. */
  takePlace(): boolean {
    return this.#tools.takePlace();
  }

  wake(why: Happening): void {
    if (this.#woken === undefined || this.#woken === 'changed') this.#woken = why;
    this.#goOn?.();
  }

  /** Within a second. After a change of everything all waits would ask at once. */
  wakeInTurn(): void {
    this.#tools.clock.after(this.#phase % ASK_MS, () => this.wake('changed'));
  }

  /**
   * Resolves at that instant, or as soon as something happens. Where nobody tells of changes the store is asked: it resolves
   * when what `reader` has read is no longer valid; without a reader, after a second at most.
   */
  async next(at: number, reader?: Reader): Promise<Woken> {
    const { clock, isTold, said } = this.#tools;
    this.reader = reader;
    const known = reader && !isTold() ? await versionsOf(reader, clock.now()) : undefined;
    for (;;) {
      const leftMs = at - clock.now();
      await this.#pause(isTold() ? leftMs : Math.min(leftMs, known ? LOOK_MS : ASK_MS));
      const woken = this.#woken;
      if (woken === 'changed') this.#woken = undefined;
      if (woken) return woken;
      if (!reader || !known || clock.now() >= at) return 'time';
      if (isTold()) continue;
      const versions = await said(reader);
      if ([...known].some(([key, version]) => (versions.get(key) ?? version) !== version)) return 'changed';
    }
  }

  async #pause(ms: number): Promise<void> {
    if (this.#woken !== undefined) return;
    await new Promise<void>((resolve) => {
      const stop = this.#tools.clock.after(Math.max(0, Math.ceil(ms)), resolve);
      this.#goOn = () => {
        stop();
        resolve();
      };
    });
    this.#goOn = undefined;
  }

  /** When to ask for what is not kept. */
  pollAt(): number {
    const now = this.#tools.clock.now();
    return now + POLL_MS - ((now + this.#phase) % POLL_MS);
  }

  /** When to read again what was read: once it is not fresh any more. */
  nextAt(readings: Iterable<Read>): number {
    const now = this.#tools.clock.now();
    let next = Infinity;
    for (const reading of readings) next = Math.min(next, this.#againAt(reading, now));
    return Math.max(next, now + LEAST_MS);
  }

  #againAt({ entry, freshUntil, code }: Read, now: number): number {
    const [least, most] = RETRY_MS;
    if (code !== undefined && freshUntil !== undefined && entry)
      return now + Math.min(most, Math.max(least, freshUntil - entry.storedAt));
    const isKept = freshUntil !== undefined && (!entry || freshUntil > entry.storedAt);
    return isKept ? freshUntil : this.pollAt();
  }

  end(): void {
    this.#tools.leave();
    this.wake('left');
  }
}

/** What a wait has to know of a reading. */
interface Read {
  readonly entry?: { readonly storedAt: number } | null | undefined;
  readonly freshUntil?: number | undefined;
  readonly code?: string | undefined;
}
