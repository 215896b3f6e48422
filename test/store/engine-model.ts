import {
  type Change,
  LEASE_MS,
  type KeyQuestion,
  type KeyReply,
  type Question,
  type Save,
  type SaveReply,
} from '../../src/store/shared/engine.ts';
import { EVERYTHING as ALL } from '../../src/store/store.ts';
import type { Mark, WriteBegin, WriteBegun, WriteEnded } from '../../src/store/writes.ts';

interface Copy {
  readonly version: string;
  readonly askedAt: number;
  readonly freshUntil: number;
  readonly endsAt: number;
  readonly text: string;
}

interface Counter {
  used: number;
  endsAt: number;
}

/** What is under way or of unknown outcome. */
class Marks {
  #all: readonly Mark[] = [];

  /** Returns the tags of those that are over. */
  expire(now: number): readonly string[] {
    const over = this.#all.filter(({ until }) => until <= now);
    this.#all = this.#all.filter(({ until }) => until > now);
    return over.flatMap(({ tags }) => tags);
  }

  covers(tags: readonly string[]): boolean {
    return this.#all.some((mark) => mark.tags.some((tag) => tag === ALL || tags.includes(tag)));
  }

  find(nonce: string): Mark | undefined {
    return this.#all.find((mark) => mark.nonce === nonce);
  }

  equalTo({ purchase, hasKey }: Pick<Mark, 'purchase' | 'hasKey'>, now: number) {
    const equal = this.#all.filter((mark) => mark.purchase === purchase && !(hasKey && mark.hasKey));
    if (purchase === undefined || equal.length === 0) return undefined;
    return equal.some(({ isUnknown, busyUntil }) => !isUnknown && busyUntil > now) ? 'under_way' : 'unknown';
  }

  set(mark: Mark): void {
    this.#all = [...this.#all.filter(({ nonce }) => nonce !== mark.nonce), mark];
  }

  /** Returns whether its tags need new versions. */
  end({ end, nonce, heldMs = 0 }: WriteEnded, ended: Mark, now: number): boolean {
    const mark = this.find(nonce);
    if (end === 'unknown') this.set({ ...(mark ?? ended), isUnknown: true });
    else this.#all = this.#all.filter((one) => one !== mark);
    const until = (mark?.setAt ?? now) + heldMs;
    const isHeld = mark !== undefined && end !== 'unknown' && until > now;
    if (isHeld) this.#all = [...this.#all, { ...mark, nonce: '', tags: [], busyUntil: until, until, isUnknown: false }];
    return end !== 'not_sent';
  }

  /** When the last one expires. */
  get until(): number {
    return Math.max(0, ...this.#all.map(({ until }) => until));
  }
}

/** How long versions live without a copy. */
const VERSIONS_MS = 120_000;

/**
 * The simplest correct engine, for one account. Its time stands still but for `pass`. Its versions differ from those of
 * other engines; only which of them are equal counts.
 */
export class ModelAccount {
  #now = 0;
  #last = 0;
  #epoch = 0;
  #endsAt = 0;
  #cooldownUntil = 0;
  readonly #versions = new Map<string, number>();
  readonly #marks = new Marks();
  /** Until when it is remembered that a write ended before it began. */
  readonly #gone = new Map<string, number>();
  readonly #leases = new Map<string, { readonly nonce: string; readonly version: string; readonly until: number }>();
  readonly #copies = new Map<string, Copy>();
  readonly #counters = new Map<string, Counter>();
  readonly #records = new Map<string, { nonce: string; busyUntil: number; text: string; endsAt: number }>();

  pass(ms: number): void {
    this.#now += ms;
    if (this.#now >= this.#endsAt) this.#drop([ALL]);
    this.#drop(this.#marks.expire(this.#now));
  }

  snapshot({ window, keys }: Question): { used?: number; cooldown: boolean; keys: (KeyReply | undefined)[] } {
    const used = window && this.#count(`w${window.name}`, window.lengthMs, 1);
    const cooldown = this.#cooldownUntil > this.#now;
    const isOver = window && (used ?? 0) > window.limit;
    const replies = isOver ? [] : keys.map((key) => (this.#marks.covers(key.tags) ? undefined : this.#reply(key)));
    return { ...(used !== undefined && { used }), cooldown, keys: replies };
  }

  save({ key, tags, version, askedAt, lease, copy, drop }: Save): SaveReply {
    if (lease !== undefined && this.#leases.get(key)?.nonce === lease) this.#leases.delete(key);
    if (drop === 'everything') this.#drop([ALL]);
    if (drop === 'key') {
      this.#copies.delete(key);
      this.#drop(tags.slice(0, 1));
    }
    if (this.#marks.covers(tags) || this.#version(tags) !== version) return 'void';
    if (!copy) return 'full';
    const known = this.#copyOf(key);
    if (known?.version === version && known.askedAt > askedAt) return 'void';
    const [freshUntil, endsAt] = [this.#now + copy.freshMs, this.#now + copy.lifeMs];
    this.#copies.set(key, { version, askedAt, freshUntil, endsAt, text: String(copy.value) });
    this.#live(copy.lifeMs);
    return 'kept';
  }

  beginWrite({ nonce, window, tags, busyMs, markMs, record, purchase }: WriteBegin): WriteBegun {
    const used = window && this.#count(`w${window.name}`, window.lengthMs, 1);
    if (window && (used ?? 0) > window.limit) return { is: 'limit' };
    if ((this.#gone.get(nonce) ?? 0) > this.#now) return { is: 'over' };
    const mark = this.#marks.find(nonce);
    if (mark) return { is: mark.isUnknown ? 'over' : 'begun' };
    const known = record && this.#recordOf(record.key);
    if (known && known.nonce !== nonce) {
      const busyUntil = Math.min(known.busyUntil, this.#marks.find(known.nonce)?.busyUntil ?? 0);
      const isOver = known.busyUntil > 0 && busyUntil <= this.#now;
      return { is: 'record', value: Buffer.from(known.text), isOver };
    }
    if (known?.busyUntil === 0) return { is: 'over' };
    const standing = this.#marks.equalTo({ purchase, hasKey: record !== undefined }, this.#now);
    if (standing) return { is: 'equal', standing };
    if (this.#cooldownUntil > this.#now) return { is: 'cooldown', cooldownMs: 0 };
    const busyUntil = this.#now + busyMs;
    const until = this.#now + markMs;
    const hasKey = record !== undefined;
    this.#marks.set({ nonce, tags, purchase, hasKey, busyUntil, until, isUnknown: false, setAt: this.#now });
    this.#live(markMs);
    if (record)
      this.#records.set(record.key, {
        nonce,
        busyUntil,
        text: String(record.value),
        endsAt: this.#now + record.lifeMs,
      });
    return { is: 'begun' };
  }

  endWrite(write: WriteEnded): void {
    const { nonce, end, tags, markMs, purchase, record, dropEverything } = write;
    const [now, until, hasKey] = [this.#now, this.#now + markMs, record !== undefined];
    const mark = { nonce, tags, purchase, hasKey, busyUntil: now, until, isUnknown: false, setAt: now };
    if (end === 'not_sent' && !this.#marks.find(nonce)) this.#gone.set(nonce, until);
    if (this.#marks.end(write, mark, now)) this.#drop(tags);
    this.#live(this.#marks.until - now);
    if (dropEverything) this.#drop([ALL]);
    const known = record && this.#recordOf(record.key);
    if (!record || (known && known.nonce !== nonce)) return;
    if (end === 'refused' || end === 'not_sent') this.#records.delete(record.key);
    else if (record.value) {
      const [text, endsAt] = [String(record.value), this.#now + record.lifeMs];
      this.#records.set(record.key, { nonce, busyUntil: 0, text, endsAt });
    }
  }

  change({ cooldownMs = 0 }: Change): void {
    this.#cooldownUntil = Math.max(this.#cooldownUntil, this.#now + cooldownMs);
    this.#live(cooldownMs);
  }

  #reply(question: KeyQuestion): KeyReply {
    const { key, tags, have, waitedFor } = question;
    const version = this.#version(tags);
    this.#live(VERSIONS_MS);
    const own = have?.version === version ? have : undefined;
    const found = this.#copyOf(key);
    const copy = found?.version === version && !(own && own.askedAt > found.askedAt) ? found : undefined;
    const isNew = copy !== undefined && copy.askedAt !== own?.askedAt;
    const isFresh = (copy && copy.freshUntil > this.#now) || own?.isFresh;
    const isEnough = isNew && waitedFor !== undefined;
    const lease = isFresh ? undefined : this.#lease(isEnough ? { ...question, lease: undefined } : question, version);
    return {
      version,
      ...(copy && { copy: { askedAt: copy.askedAt, ageMs: 0, ...(isNew && { value: Buffer.from(copy.text) }) } }),
      ...(lease !== undefined && { lease }),
    };
  }

  #lease({ key, lease, waitedFor }: KeyQuestion, version: string): string | undefined {
    const known = this.#leases.get(key);
    const isLive = known !== undefined && known.until > this.#now && known.version === version;
    const held = isLive ? known.nonce : undefined;
    if (waitedFor !== undefined && held === waitedFor) return held;
    if (lease === undefined) return undefined;
    if (held !== undefined && held !== lease) return waitedFor === undefined ? held : undefined;
    this.#leases.set(key, { nonce: lease, version, until: this.#now + LEASE_MS });
    return lease;
  }

  #version(tags: readonly string[]): string {
    return [this.#epoch, ...tags.map((tag) => this.#versions.get(tag) ?? 0)].join('.');
  }

  #drop(tags: readonly string[]): void {
    if (tags.includes(ALL)) this.#epoch = ++this.#last;
    else for (const tag of tags) this.#versions.set(tag, ++this.#last);
  }

  #count(name: string, lengthMs: number, more: number): number {
    const known = this.#counters.get(name);
    const counter = known && known.endsAt > this.#now ? known : { used: 0, endsAt: this.#now + lengthMs };
    counter.used += more;
    this.#counters.set(name, counter);
    return counter.used;
  }

  #copyOf(key: string): Copy | undefined {
    const copy = this.#copies.get(key);
    return copy && copy.endsAt > this.#now ? copy : undefined;
  }

  #recordOf(key: string) {
    const record = this.#records.get(key);
    return record && record.endsAt > this.#now ? record : undefined;
  }

  #live(ms: number): void {
    this.#endsAt = Math.max(this.#endsAt, this.#now + ms);
  }
}
