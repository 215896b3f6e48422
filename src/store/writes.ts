import { GatewayError } from '../core/errors.ts';
import {
  type Begun,
  EVERYTHING,
  type NewWrite,
  type OpenState,
  type SessionId,
  type Tag,
  type Use,
  type Window,
  type Version,
  type WriteEnd,
  type WriteRecord,
} from './store.ts';

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
    let version = this.#epoch;
    for (const tag of tags) version += `.${this.#tags.get(tag) ?? '0'}`;
    return version;
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

/** Marks of an account; beyond them writes are refused. */
export const MAX_MARKS = 1_000;

/** `Value`: that of a record; sealed where it leaves the process. */
export interface WriteBegin<Value = Uint8Array> {
  readonly nonce: string;
  readonly window?: Window | undefined;
  /** While the mark stands, no copy with one of these is used or kept. */
  readonly tags: readonly string[];
  /** How long the request may take. After that an unsettled mark or record is of unknown outcome. */
  readonly busyMs: number;
  /** How long the mark stands where no end is reported. */
  readonly markMs: number;
  readonly record?: { readonly key: string; readonly value: Value; readonly lifeMs: number } | undefined;
  /** Hash of what a purchase buys. One without a key is equal to any with a mark, one with a key to those without. */
  readonly purchase?: string | undefined;
  /** The session that it came by, as in a question. */
  readonly session?: SessionId | undefined;
  /** Nothing is to begin: what is known of the key is asked. An object of an earlier release begins what is over at once. */
  readonly isQuestion?: true | undefined;
}

/**
 * Nothing is stored but with `begun`. `revoked`: its session is over. `over`: the write has ended already. `limit`: the
 * window is used up. `record`: the key is taken. `equal`: an equal purchase is not over. `cooldown`: the upstream wants no
 * calls. `another_store`: records may be missing. `full`: there is no room. `free`: the key that was asked for has no record.
 */
export type WriteBegun<Value = Uint8Array> = {
  readonly use?: Use | undefined;
  /** How long ago that was announced which prevents it: a write that is over, or the end of its session. */
  readonly sinceMs?: number | undefined;
} & (
  | { readonly is: 'begun' | 'over' | 'limit' | 'full' | 'revoked' | 'free' }
  /** `leftMs`: until the store can be relied on. */
  | { readonly is: 'another_store'; readonly leftMs: number }
  | { readonly is: 'cooldown'; readonly cooldownMs: number }
  | { readonly is: 'equal'; readonly standing: OpenState }
  /** `isOver`: the time of the recorded request has passed. */
  | { readonly is: 'record'; readonly value: Value; readonly isOver: boolean }
);

export interface WriteEnded<Value = Uint8Array> extends Pick<WriteBegin, 'nonce' | 'tags' | 'purchase'> {
  /**
   * `done`: settles the record, removes the mark. `refused`: removes both. `unknown`: settles the record, leaves the mark
   * until its time. `not_sent`: removes both. All but `not_sent` give the tags new versions, again when a mark expires.
   */
  readonly end: 'done' | 'refused' | 'unknown' | 'not_sent';
  /** How much longer the mark stands, or its nonce is remembered. */
  readonly markMs: number;
  readonly record?: { readonly key: string; readonly value?: Value | undefined; readonly lifeMs: number } | undefined;
  /** The credential was refused. */
  readonly dropEverything?: boolean | undefined;
  /** How long after its announcement its client is answered. Until then an equal purchase finds it under way. */
  readonly heldMs?: number | undefined;
}

/** A write that is under way or of unknown outcome, as objects store it. Instants in milliseconds of one clock. */
export interface Mark {
  readonly nonce: string;
  /** What it invalidates. */
  readonly tags: readonly Tag[];
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

/** What is kept of the writes of an account. */
export interface WriteKinds {
  /** Of a key. Settled without `busyUntil`. */
  record: { readonly nonce: string; readonly busyUntil?: number };
  mark: Mark;
  /** A write whose end came before its beginning. */
  gone: true;
}

export interface Row<Facts, Value> {
  readonly facts: Facts;
  readonly value?: Value | undefined;
  readonly until: number;
}

/** Where it is kept, by name: in this process, or in SQLite. Expired rows are not found. */
export interface WriteRows<Value> {
  find<Kind extends keyof WriteKinds>(kind: Kind, name: string, now: number): WriteKinds[Kind] | undefined;
  /** Of a record that was found. */
  valueOf(kind: 'record', name: string): Value;
  put<Kind extends keyof WriteKinds>(kind: Kind, name: string, row: Row<WriteKinds[Kind], Value>): void;
  drop(kind: keyof WriteKinds, name: string): void;
  /** For the mark of one more write, and its record. */
  hasRoomFor(write: WriteBegin<Value>, now: number): boolean;
}

/** The writes of one account, in the process and in its object: their marks and records. */
export class Writes<Value = Uint8Array> {
  readonly #rows: WriteRows<Value>;
  readonly #marks: Map<string, Mark>;
  readonly #renew: (tags: readonly Tag[]) => void;

  /** `renew`: gives tags new versions. `marks`: those that are there already. */
  constructor(rows: WriteRows<Value>, renew: (tags: readonly Tag[]) => void, marks: readonly Mark[] = []) {
    this.#rows = rows;
    this.#renew = renew;
    this.#marks = new Map(marks.map((mark) => [mark.nonce, mark]));
  }

  /** Whether no copy with these tags may be used or kept. */
  covers(tags: readonly Tag[]): boolean {
    if (this.#marks.size === 0) return false;
    return [...this.#marks.values()].some((mark) => mark.tags.some((tag) => tag === EVERYTHING || tags.includes(tag)));
  }

  /** First in each call. A mark from before the clock was set back stands for its whole time from now on. */
  expire(now: number): void {
    if (this.#marks.size === 0) return;
    const renewed: Tag[] = [];
    for (const mark of this.#marks.values()) {
      const { nonce, tags, busyUntil, until, setAt = now } = mark;
      const ahead = setAt - now;
      if (ahead > 0) this.#mark({ ...mark, busyUntil: busyUntil - ahead, until: until - ahead, setAt: now });
      else if (until <= now && this.#unmark(nonce)) renewed.push(...tags);
    }
    if (renewed.length > 0) this.#renew(renewed);
  }

  begin(write: WriteBegin<Value>, now: number, cooldownMs: number): WriteBegun<Value> {
    const { nonce, record } = write;
    if (this.#rows.find('gone', nonce, now)) return { is: 'over' };
    const own = this.#marks.get(nonce);
    if (own) return { is: own.isUnknown ? 'over' : 'begun' };
    const recorded = record && this.#recorded(record.key, nonce, now);
    if (recorded) return recorded;
    if (write.isQuestion) return { is: 'free' };
    const mark = markOf(write, now, now + write.busyMs);
    const standing = this.#standing(mark, now);
    if (standing) return { is: 'equal', standing };
    if (cooldownMs > 0) return { is: 'cooldown', cooldownMs };
    if (this.#marks.size >= MAX_MARKS || !this.#rows.hasRoomFor(write, now)) return { is: 'full' };
    const facts = { nonce, busyUntil: mark.busyUntil };
    if (record) this.#rows.put('record', record.key, { facts, value: record.value, until: now + record.lifeMs });
    this.#mark(mark);
    return { is: 'begun' };
  }

  /** Versions change only now: until now the mark hid the copies, and if the write was not sent they are valid again. */
  end(write: WriteEnded<Value>, now: number): void {
    const { nonce, tags, end, markMs, dropEverything } = write;
    this.#endRecord(write, now);
    const mark = this.#marks.get(nonce);
    const stands = mark && mark.until > now ? mark : markOf(write, now, now);
    if (end === 'unknown') this.#mark({ ...stands, isUnknown: true });
    else if (mark) this.#unmark(nonce);
    else if (end === 'not_sent') this.#rows.put('gone', nonce, { facts: true, until: now + markMs });
    if (dropEverything) this.#renew([EVERYTHING]);
    else if (end !== 'not_sent') this.#renew(tags);
  }

  /** The state of an equal purchase. Two that both have a key are not equal: the key is what tells them apart. */
  #standing({ purchase, hasKey }: Mark, now: number): OpenState | undefined {
    if (purchase === undefined) return undefined;
    const equal = [...this.#marks.values()].filter((mark) => mark.purchase === purchase && !(hasKey && mark.hasKey));
    if (equal.length === 0) return undefined;
    return equal.some(({ isUnknown, busyUntil }) => !isUnknown && busyUntil > now) ? 'under_way' : 'unknown';
  }

  /** The result for a write whose key has a record; undefined where the write may take it. */
  #recorded(key: string, nonce: string, now: number): WriteBegun<Value> | undefined {
    const record = this.#rows.find('record', key, now);
    if (!record) return undefined;
    const { busyUntil } = record;
    if (record.nonce === nonce) return busyUntil === undefined ? { is: 'over' } : undefined;
    const isBusy = busyUntil !== undefined && Math.min(busyUntil, this.#marks.get(record.nonce)?.busyUntil ?? 0) > now;
    const isOver = busyUntil !== undefined && !isBusy;
    return { is: 'record', value: this.#rows.valueOf('record', key), isOver };
  }

  /** Settles or deletes its record, unless that is another write's. */
  #endRecord({ nonce, end, record }: WriteEnded<Value>, now: number): void {
    if (!record) return;
    const { key, value, lifeMs } = record;
    const owner = this.#rows.find('record', key, now)?.nonce ?? nonce;
    if (owner !== nonce) return;
    if (end === 'refused' || end === 'not_sent') this.#rows.drop('record', key);
    else if (value) this.#rows.put('record', key, { facts: { nonce }, value, until: now + lifeMs });
  }

  #mark(mark: Mark): void {
    this.#marks.set(mark.nonce, mark);
    this.#rows.put('mark', mark.nonce, { facts: mark, until: mark.until });
  }

  #unmark(nonce: string): boolean {
    this.#rows.drop('mark', nonce);
    return this.#marks.delete(nonce);
  }
}

type MarkedWrite = WriteBegin<unknown> | WriteEnded<unknown>;

function markOf({ nonce, tags, purchase, record, markMs }: MarkedWrite, now: number, busyUntil: number): Mark {
  const hasKey = record !== undefined;
  return { nonce, tags, purchase, hasKey, busyUntil, until: now + markMs, isUnknown: false, setAt: now };
}

/** The beginning of a write; `lifeMs`: of its record. */
export function beginOf(write: NewWrite, lifeMs: number): WriteBegin<WriteRecord> {
  const { key, fingerprint, isPurchase, nonce, tags, window, session, isQuestion, now, endsAt, until } = write;
  return {
    nonce,
    tags,
    window,
    session,
    isQuestion,
    purchase: isPurchase ? fingerprint : undefined,
    busyMs: endsAt - now,
    markMs: until - now,
    record: key === undefined ? undefined : { key, value: { fingerprint, outcome: 'under_way' }, lifeMs },
  };
}

/** Its end. */
export function endedOf(write: NewWrite, end: WriteEnd, now: number): WriteEnded<WriteRecord> {
  const { key, fingerprint, isPurchase, nonce, tags } = write;
  const dropEverything = end === 'credential_refused';
  const how = typeof end === 'object' ? 'done' : dropEverything ? 'refused' : end;
  const outcome = typeof end === 'object' || end === 'unknown' ? end : undefined;
  const value = outcome && { fingerprint, outcome };
  const lifeMs = Math.max(1, write.now + write.keyMs - now);
  const record = key === undefined ? undefined : { key, value, lifeMs };
  const purchase = isPurchase ? fingerprint : undefined;
  return { nonce, tags, purchase, end: how, markMs: write.until - now, record, dropEverything };
}

/** What prevents a write, if anything does. */
export function begunOf(
  { fingerprint }: NewWrite,
  begun: WriteBegun<WriteRecord>,
  retrySeconds: number,
): Omit<Begun, 'use'> {
  if (begun.is === 'begun' || begun.is === 'free') return {};
  if (begun.is === 'limit' || begun.is === 'cooldown') return { isLimited: true };
  if (begun.is === 'revoked') return { isRevoked: true };
  if (begun.is === 'equal') return { record: { fingerprint, outcome: begun.standing } };
  if (begun.is === 'record') return { record: begun.isOver ? { ...begun.value, outcome: 'unknown' } : begun.value };
  return { refusal: begun.is === 'another_store' ? replaced(begun.leftMs) : unavailable(begun.is, retrySeconds) };
}

export const unavailable = (cause: unknown, retryAfter: number) =>
  GatewayError.of('store_unavailable', { fault: 'not_sent', retryAfter, cause });

const replaced = (leftMs: number) =>
  GatewayError.of('store_unavailable', {
    fault: 'not_sent',
    retryAfter: Math.max(1, Math.ceil(leftMs / 1000)),
    detail: 'The shared store was restarted or replaced a moment ago; until it can be relied upon nothing is bought.',
  });
