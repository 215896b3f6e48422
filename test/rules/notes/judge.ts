import { LATE_MS, REQUEST_MS, WINDOW_MS } from './world.ts';

/** Within which a process that begins has said HELLO, where nothing is in its way. */
const CONNECTING_MS = 1_500;

const TAGS = ['a', 'b'] as const;
export type ReadTag = (typeof TAGS)[number];

/** How a write ended for the one who sent it. */
type Outcome = 'done' | 'refused' | 'unknown';

/** A write that an instance began; the times are when things happened to it. */
export interface Write {
  readonly nonce: string;
  readonly tags: readonly string[];
  readonly isPurchase: boolean;
  readonly key: string | undefined;
  /** When its client asked. */
  readonly askedAt: number;
  begunAt?: number;
  sentAt?: number;
  /** When the upstream carried it out, and what it made of the tags. */
  carriedAt?: number;
  values?: Readonly<Partial<Record<ReadTag, number>>>;
  overAt?: number;
  outcome?: Outcome;
  /** When anybody was told its answer; Infinity: nobody yet. */
  answeredAt: number;
  /** Its instance was killed before it was answered. */
  isCrashed?: boolean;
}

export type Wrong =
  /** A read that began after a write's answer gave what was before it. */
  | 'old'
  /** A key or an equal purchase was sent twice. */
  | 'twice'
  /** The key of a write that was not sent is taken. */
  | 'stuck'
  /** A key that is under way was said to be unknown. */
  | 'notFound'
  /** A session lived on after its sign-out was answered. */
  | 'session'
  /** After a refusal that the store knew of a copy from before it was given. */
  | 'refused'
  /** An instance that has its store back does not read or write. */
  | 'stopped';

/** What a read that begins now has to give at least. */
export interface Due {
  readonly began: number;
  readonly value: number;
  /** A copy may not have been asked for before. */
  readonly copiesFrom: number;
}

/** An answer of the upstream. */
export interface Answer {
  readonly value: number;
  readonly at: number;
}

/** While instances use different stores none can know what others do. */
interface Split {
  readonly from: number;
  to: number;
}

/** Knows all that happened, and finds what should not have. */
export class Judge {
  readonly violations: { readonly kind: Wrong; readonly what: string }[] = [];
  readonly story: string[] = [];
  readonly counts = { reads: 0, copies: 0, writes: 0, sent: 0, refusals: 0 };
  readonly sent: Write[] = [];
  readonly #time: { readonly now: number };
  readonly #startMs: number;
  /** When the store lost what it was told. */
  readonly losses: number[] = [];
  readonly #splits: Split[] = [];
  readonly #starts: number[] = [];
  readonly #upstream: Record<ReadTag, number> = { a: 0, b: 0 };
  readonly #signedOut = new Map<string, { readonly askedAt: number; readonly answeredAt: number }>();
  #values = 0;
  #copiesFrom = -Infinity;

  constructor(time: { readonly now: number }) {
    this.#time = time;
    this.#startMs = time.now;
  }

  say(what: string): void {
    this.story.push(`${(this.#time.now - this.#startMs).toFixed(0)} ${what}`);
  }

  violation(kind: Wrong, what: string): void {
    this.violations.push({ kind, what });
    this.say(`*** ${kind}: ${what}`);
  }

  /** From here on the store may have forgotten what it was told. */
  lost(why: string): void {
    this.losses.push(this.#time.now);
    this.say(`another store: ${why}`);
  }

  /** Until the split that is returned has an end, instances use different stores. */
  split(): { end(): void } {
    const split = { from: this.#time.now, to: Infinity };
    this.#splits.push(split);
    return { end: () => void (split.to = this.#time.now) };
  }

  /** A process begins, and knows nothing. */
  started(): void {
    this.#starts.push(this.#time.now);
  }

  answer(tag: ReadTag): Answer {
    return { value: this.#upstream[tag], at: this.#time.now };
  }

  /** The store knows now that the upstream refused the account then. */
  refused(at: number): void {
    if (this.#isSplit(at)) return;
    this.counts.refusals++;
    this.say(`the store knows of the refusal of ${(at - this.#startMs).toFixed(0)}`);
    this.#copiesFrom = Math.max(this.#copiesFrom, at);
  }

  carryOut(write: Write): void {
    write.carriedAt = this.#time.now;
    const tags = TAGS.filter((tag) => write.tags.includes('*') || write.tags.includes(tag));
    write.values = Object.fromEntries(tags.map((tag) => [tag, (this.#upstream[tag] = ++this.#values)]));
  }

  due(tag: ReadTag): Due {
    const { now } = this.#time;
    const known = this.sent.filter(
      ({ answeredAt, carriedAt }) => answeredAt < now && carriedAt !== undefined && carriedAt < now,
    );
    const values = known.filter((write) => !this.#isForgotten(write)).map((write) => write.values?.[tag] ?? 0);
    return { began: now, value: Math.max(0, ...values), copiesFrom: this.#copiesFrom };
  }

  given(tag: ReadTag, { value, at }: Answer, due: Due, how: 'copy' | 'fetched answer'): void {
    this.counts.reads++;
    if (how === 'copy') this.counts.copies++;
    if (this.#isSplit(due.began)) return;
    if (value < due.value) this.violation('old', `a ${how} of ${tag} is ${value} instead of at least ${due.value}`);
    if (how === 'copy' && at < due.copiesFrom) this.violation('refused', `a copy of ${tag} is from before a refusal`);
  }

  /** Called when a write is about to be sent: is there another with its key or an equal one, under way or from before? */
  sends(write: Write): void {
    this.say(`${write.nonce} of ${write.tags.join(', ')} with ${write.key ?? 'no key'} is sent`);
    this.counts.sent++;
    for (const other of this.sent) if (other.isPurchase && write.isPurchase) this.#compare(write, other);
    this.sent.push(write);
  }

  #compare(write: Write, other: Write): void {
    const { now } = this.#time;
    const isSame = write.key !== undefined && other.key === write.key;
    const isEqual = write.key === undefined || other.key === undefined;
    if (!isSame && !isEqual) return;
    const [sentAt, begunAt] = [other.sentAt ?? now, write.begunAt ?? now];
    const wasSent = other.outcome !== 'refused';
    const isMeanwhile =
      sentAt > begunAt && wasSent && !this.#isLostSince(write.askedAt) && !this.#isSplit(write.askedAt);
    const isMarked = isSame || now < other.askedAt + REQUEST_MS + LATE_MS;
    // Another store keeps what must not be sent twice from being sent for a while.
    const isFar = this.losses.some((lost) => lost >= sentAt && now > lost + WINDOW_MS);
    if (!isSame && isMeanwhile) {
      this.violation('twice', `${write.nonce} is sent although ${other.nonce} was since it began`);
    } else if (other.overAt === undefined && isMarked && !isFar && !this.#isNewApart(sentAt)) {
      this.violation('twice', `${write.nonce} is sent while ${other.nonce} is under way`);
    } else if (isSame && wasSent && !this.#isLostSince(sentAt) && !this.#isSplit(sentAt)) {
      this.violation('twice', `${write.key} is sent again`);
    }
  }

  /** Nobody knows the key. */
  notFound(key: string, askedAt: number): void {
    const open = this.sent.find(
      (write) => write.key === key && (write.sentAt ?? askedAt) < askedAt && write.overAt === undefined,
    );
    // While instances use different stores none can know what another one does.
    if (open && !open.isCrashed && !this.#isSplit(askedAt))
      this.violation('notFound', `${key} is under way as ${open.nonce}`);
  }

  /** The answer to it was given to whoever asked with its key. */
  replayed(nonce: string): void {
    const write = this.sent.find((one) => one.nonce === nonce);
    if (write) write.answeredAt = Math.min(write.answeredAt, this.#time.now);
  }

  signedOut(session: string, askedAt: number): void {
    this.#signedOut.set(session, { askedAt, answeredAt: this.#time.now });
  }

  letIn(session: string, began: number): void {
    const known = this.#signedOut.get(session);
    if (!known || known.answeredAt >= began || this.#isLostSince(known.askedAt - 50) || this.#isSplit(began)) return;
    this.violation('session', `${session} is let in`);
  }

  #isLostSince(from: number): boolean {
    return this.losses.some((lost) => lost >= from);
  }

  /** Between then and now. */
  #isSplit(from: number, to = this.#time.now): boolean {
    return this.#splits.some((split) => from < split.to && to > split.from);
  }

  /** A new process found the store that another one, which sent it, was away from: a store relies on itself for new ones. */
  #isNewApart(sentAt: number): boolean {
    const { now } = this.#time;
    const isIn = ({ from, to }: Split) => this.#starts.some((start) => start > from - CONNECTING_MS && start < to);
    return this.#splits.some((split) => sentAt < split.to && now > split.from && isIn(split));
  }

  /** Of unknown outcome, its mark lost with the store, and carried out after that: nobody can know. */
  #isForgotten({ isCrashed, outcome, sentAt = 0, carriedAt = 0 }: Write): boolean {
    if (!isCrashed && outcome !== 'unknown') return false;
    const isMarkLost = this.losses.some((lost) => lost >= sentAt && lost <= carriedAt);
    return isMarkLost || this.#splits.some(({ from, to }) => sentAt < to && carriedAt > from);
  }
}
