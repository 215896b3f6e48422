import { type Mark, Marks } from './marks.ts';
import { MAX_MARKS, type WriteBegin, type WriteBegun, type WriteEnded } from './shared/engine.ts';
import { EVERYTHING, type Tag } from './store.ts';

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
  /** Expired ones too. */
  all(kind: 'mark'): readonly Mark[];
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
  readonly #marks: Marks;
  readonly #renew: (tags: readonly Tag[]) => void;

  /** `renew`: gives tags new versions. */
  constructor(rows: WriteRows<Value>, renew: (tags: readonly Tag[]) => void) {
    this.#rows = rows;
    this.#renew = renew;
    this.#marks = new Marks(rows.all('mark'));
  }

  /** Whether no copy with these tags may be used or kept. */
  covers(tags: readonly Tag[]): boolean {
    return this.#marks.covers(tags);
  }

  /** First at each time. The clock may have been set back: what is from later than now is as if from now. */
  expire(now: number): void {
    if (this.#marks.all.length === 0) return;
    for (const { nonce } of this.#marks.setBack(now)) this.#keepMark(nonce);
    const over = this.#marks.expire(now);
    for (const { nonce } of over) this.#rows.drop('mark', nonce);
    if (over.length > 0) this.#renew(over.flatMap(({ tags }) => tags));
  }

  begin(write: WriteBegin<Value>, now: number, cooldownMs: number): WriteBegun<Value> {
    const { nonce, tags, record, purchase, busyMs, markMs } = write;
    if (this.#rows.find('gone', nonce, now)) return { is: 'over' };
    const own = this.#marks.find(nonce);
    if (own) return { is: own.isUnknown ? 'over' : 'begun' };
    const recorded = record && this.#recorded(record.key, nonce, now);
    if (recorded) return recorded;
    const hasKey = record !== undefined;
    const standing = this.#marks.equalTo({ purchase, hasKey }, now);
    if (standing) return { is: 'equal', standing };
    if (cooldownMs > 0) return { is: 'cooldown', cooldownMs };
    if (this.#marks.all.length >= MAX_MARKS || !this.#rows.hasRoomFor(write, now)) return { is: 'full' };
    const busyUntil = now + busyMs;
    if (record) {
      const { key, value, lifeMs } = record;
      this.#rows.put('record', key, { facts: { nonce, busyUntil }, value, until: now + lifeMs });
    }
    this.#marks.set({ nonce, tags, purchase, hasKey, busyUntil, until: now + markMs, isUnknown: false, setAt: now });
    this.#keepMark(nonce);
    return { is: 'begun' };
  }

  /** Versions change only now: until now the mark hid the copies, and if the write was not sent they are valid again. */
  end(write: WriteEnded<Value>, now: number): void {
    const { nonce, tags, purchase, end, markMs, record, dropEverything } = write;
    this.#endRecord(write, now);
    const until = now + markMs;
    const times = { busyUntil: now, until, setAt: now };
    if (end === 'not_sent' && !this.#marks.find(nonce)) this.#rows.put('gone', nonce, { facts: true, until });
    const hasKey = record !== undefined;
    const isRenewed = this.#marks.end(end, { nonce, tags, purchase, hasKey, isUnknown: false, ...times });
    this.#keepMark(nonce);
    if (dropEverything) this.#renew([EVERYTHING]);
    else if (isRenewed) this.#renew(tags);
  }

  /** The result for a write whose key has a record; undefined where the write may take it. */
  #recorded(key: string, nonce: string, now: number): WriteBegun<Value> | undefined {
    const record = this.#rows.find('record', key, now);
    if (!record) return undefined;
    const { busyUntil } = record;
    if (record.nonce === nonce) return busyUntil === undefined ? { is: 'over' } : undefined;
    const isBusy = busyUntil !== undefined && Math.min(busyUntil, this.#marks.find(record.nonce)?.busyUntil ?? 0) > now;
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

  /** Writes or deletes the row of a mark. */
  #keepMark(nonce: string): void {
    const mark = this.#marks.find(nonce);
    if (mark) this.#rows.put('mark', nonce, { facts: mark, until: mark.until });
    else this.#rows.drop('mark', nonce);
  }
}
