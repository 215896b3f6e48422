import {
  EVERYTHING,
  type NewWrite,
  type OpenState,
  type Revoked,
  type SessionId,
  type SessionState,
  type Tag,
  type Version,
  type WriteEnd,
  type WriteRecord,
} from './port.ts';

/** A write that is under way or of unknown outcome. Until it is over, no copy with one of its tags is given or kept. */
interface Mark {
  readonly nonce: string;
  readonly tags: readonly Tag[];
  /** Hash of what a purchase buys. */
  readonly purchase: string | undefined;
  readonly hasKey: boolean;
  /** Its request may be under way until then; afterwards its outcome is unknown. */
  readonly busyUntil: number;
  readonly until: number;
}

/**
 * All that instances have to agree on about one account. A note is never changed but replaced, by compare-and-set, so the
 * rules below are the same in this process, in Redis and in a Durable Object. Instants are by the store's clock, in
 * milliseconds.
 */
export interface Note {
  /** Version of all, and of each tag that was written since. A new version is random, so none comes back. */
  readonly all: Version;
  readonly tags: Readonly<Record<Tag, Version>>;
  readonly marks: readonly Mark[];
  /** Sessions that began under a lower epoch are over. In seconds since 1970; 0: none was raised. */
  readonly epoch: number;
  /** Sessions that were signed out, and until when they have to be known. */
  readonly ended: Readonly<Record<string, number>>;
  /** Bytes of the records of each hour. */
  readonly bytes: Readonly<Record<string, number>>;
}

/** What is kept under an idempotency key. Without `busyUntil` it is settled. */
export interface Held {
  readonly nonce: string;
  readonly busyUntil?: number | undefined;
  readonly record: WriteRecord;
}

/** How a note, and the record of a key with it, go on. `held` null: the key is free again. */
export interface Change {
  readonly note: Note;
  readonly held?: Held | null;
}

/** Stands in the place of a missing note: nothing was written for as long as any copy lives. */
export const NO_NOTE: Note = { all: '', tags: {}, marks: [], epoch: 0, ended: {}, bytes: {} };

/** No session lasts longer. */
const SESSION_MS = 30 * 24 * 60 * 60 * 1000;
/** Revoked sessions of an account that are kept one by one; with more, all of the account are revoked. */
export const MAX_REVOKED = 64;
const MAX_TAGS = 64;
const MAX_MARKS = 100;
const HOUR_MS = 3_600_000;
const RECORDS_MS = 24 * HOUR_MS;
/** A bound for the records of an account in a day. */
const MAX_RECORD_BYTES = 4_194_304;
/** What a record takes beside the text of its answer. */
const RECORD_BYTES = 500;
/** Characters. Of a longer answer the record says only that its outcome is unknown. */
const MAX_ANSWER = 65_536;
/** An answer that took longer is not kept. */
export const LONGEST_READ_MS = 60_000;
/** How long a note is kept at least after a change: longer than what was asked for before may be kept. */
export const CHANGED_MS = 2 * LONGEST_READ_MS;
/** Seconds. Clocks of instances follow the store's by less. */
const EPOCH_MARGIN = 10;

const random = () => crypto.randomUUID().slice(0, 18);

/** What was found under another note, or under none, is void. */
export const newNote = (): Note => ({ ...NO_NOTE, all: random() });

const touches = ({ tags: own }: Mark, tags: readonly Tag[]) =>
  own.some((tag) => tag === EVERYTHING || tags.includes(tag));

/** Undefined while a mark hides it. A mark whose time is over is part of the version: its write may have been carried out. */
export function versionOf({ all, tags: known, marks }: Note, tags: readonly Tag[], now: number): Version | undefined {
  let version = all;
  for (const tag of tags) version += `.${known[tag] ?? ''}`;
  for (const mark of marks) {
    if (!touches(mark, tags)) continue;
    if (mark.until > now) return undefined;
    version += `.${mark.nonce}`;
  }
  return version;
}

function renewed(note: Note, tags: readonly Tag[]): Note {
  if (tags.length === 0) return note;
  const version = random();
  const all = { ...note.tags, ...Object.fromEntries(tags.map((tag) => [tag, version])) };
  const isAll = tags.includes(EVERYTHING) || Object.keys(all).length > MAX_TAGS;
  return isAll ? { ...note, all: version, tags: {} } : { ...note, tags: all };
}

/** Removes marks whose time is over. What they touched gets new versions, or what was before them would be valid again. */
function cleaned(note: Note, now: number): Note {
  const over = note.marks.filter(({ until }) => until <= now);
  if (over.length === 0) return note;
  const left = { ...note, marks: note.marks.filter(({ until }) => until > now) };
  const touched = over.flatMap(({ tags }) => tags);
  return renewed(left, touched);
}

/** The outcome of a key, as far as it is known. A record without an answer is never free. */
export const outcomeOf = ({ busyUntil, record }: Held, now: number): WriteRecord =>
  busyUntil !== undefined && busyUntil <= now ? { ...record, outcome: 'unknown' } : record;

/** How the note goes on with the write; or why the write may not begin: the record of its key, or of an equal purchase. */
export function begun(
  before: Note,
  held: Held | undefined,
  write: NewWrite,
  now: number,
): Change | { readonly record: WriteRecord } | 'full' {
  const note = cleaned(before, now);
  const { nonce, key, fingerprint } = write;
  if (held) return { record: outcomeOf(held, now) };
  const busyUntil = now + write.endsAt - write.now;
  const mark = markOf(write, busyUntil, now + write.until - write.now);
  const outcome = standingIn(note, mark, now);
  if (outcome) return { record: { fingerprint, outcome } };
  const bytes = Object.values(bytesIn(note, now)).reduce((sum, some) => sum + some, 0);
  if (note.marks.length >= MAX_MARKS || (key !== undefined && bytes > MAX_RECORD_BYTES)) return 'full';
  const next = { ...note, marks: [...note.marks, mark] };
  if (key === undefined) return { note: next };
  return { note: next, held: { nonce, busyUntil, record: { fingerprint, outcome: 'under_way' } } };
}

const markOf = ({ nonce, tags, isPurchase, fingerprint, key }: NewWrite, busyUntil: number, until: number): Mark => {
  const purchase = isPurchase ? fingerprint : undefined;
  return { nonce, tags, purchase, hasKey: key !== undefined, busyUntil, until };
};

/** The outcome of an equal purchase. Two that both have a key are told apart by it. */
function standingIn({ marks }: Note, { purchase, hasKey }: Mark, now: number): OpenState | undefined {
  if (purchase === undefined) return undefined;
  const equal = marks.filter((one) => one.purchase === purchase && !(hasKey && one.hasKey));
  if (equal.length === 0) return undefined;
  return equal.some(({ busyUntil }) => busyUntil > now) ? 'under_way' : 'unknown';
}

/**
 * An end may be repeated, and may come before the beginning does, which then meets another note than it has seen. `leftMs`: how
 * much longer the upstream may carry out a write without an answer.
 */
export function ended(
  before: Note,
  held: Held | undefined,
  { write, end, leftMs }: { readonly write: NewWrite; readonly end: WriteEnd; readonly leftMs: number },
  now: number,
): Change {
  const note = cleaned(before, now);
  const { nonce, key, fingerprint, tags } = write;
  const others = note.marks.filter((mark) => mark.nonce !== nonce);
  const own = markOf(write, 0, now + Math.max(1, leftMs)); // not busy: it is over, and clocks of instances differ
  const left = { ...note, marks: end === 'unknown' ? [...others, own] : others };
  const after = renewed(left, end === 'not_sent' ? [] : end === 'credential_refused' ? [EVERYTHING] : tags);
  const isOther = key === undefined || (held !== undefined && held.nonce !== nonce);
  if (isOther) return { note: after };
  if (typeof end !== 'object' && end !== 'unknown') return { note: after, held: null };
  const length = typeof end === 'object' ? (end.text?.length ?? 0) : 0;
  const outcome = length > MAX_ANSWER ? 'unknown' : end;
  const bytes = withBytes(bytesIn(after, now), RECORD_BYTES + (outcome === end ? length : 0), now);
  return { note: { ...after, bytes }, held: { nonce, record: { fingerprint, outcome } } };
}

const bytesIn = ({ bytes }: Note, now: number) =>
  Object.fromEntries(Object.entries(bytes).filter(([hour]) => Number(hour) * HOUR_MS > now - RECORDS_MS));

function withBytes(bytes: Readonly<Record<string, number>>, more: number, now: number) {
  const hour = String(Math.floor(now / HOUR_MS) + 1);
  return { ...bytes, [hour]: (bytes[hour] ?? 0) + more };
}

export const dropped = (before: Note, tags: readonly Tag[], now: number): Note => renewed(cleaned(before, now), tags);

/** The epoch under which a session begins now. */
export const epochIn = ({ epoch }: Note, now: number): number => Math.max(epoch, secondsOf(now));

/** An epoch that ends all sessions which have begun. */
export const nextEpoch = (session: SessionId, now: number): number =>
  Math.max(session.epoch, secondsOf(now)) + EPOCH_MARGIN;

const secondsOf = (ms: number) => Math.floor(ms / 1000);

export const sessionIn = (
  { epoch, ended: sessions }: Note,
  { id, epoch: own }: SessionId,
  now: number,
): SessionState => ({
  isOver: (sessions[id] ?? 0) > now || own < epoch,
});

/** All sessions are signed out when too many were signed out one by one. */
export function revoked(before: Note, what: Revoked, now: number): Note {
  const live = Object.entries(before.ended).filter(([, until]) => until > now);
  if ('epoch' in what) return { ...before, epoch: Math.max(before.epoch, what.epoch), ended: Object.fromEntries(live) };
  const all = new Map([...live, [what.id, now + SESSION_MS]]);
  if (all.size <= MAX_REVOKED) return { ...before, ended: Object.fromEntries(all) };
  return { ...before, epoch: epochIn(before, now) + EPOCH_MARGIN, ended: {} };
}

/** How long it has to be kept, at least `leastMs`. */
export function lifeOf({ marks, ended: sessions, epoch, bytes }: Note, leastMs: number, now: number): number {
  const hours = Object.keys(bytes).map((hour) => Number(hour) * HOUR_MS + RECORDS_MS);
  const ends = [...marks.map(({ until }) => until), ...Object.values(sessions), ...hours];
  return Math.max(now + leastMs, epoch > 0 ? epoch * 1000 + SESSION_MS : 0, ...ends) - now;
}
