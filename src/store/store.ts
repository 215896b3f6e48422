import type { MaybePromise } from '../core/runtime.ts';

/** Keyed hash of a credential; several, joined by `.`, while several secrets are listed, the first's first. */
export type AccountId = string;

/** The names of an account, one for each secret. */
export const accountNamesOf = (account: AccountId): readonly string[] => account.split('.');

/** The one that logs know. */
export const accountNameOf = (account: AccountId): string => account.split('.', 1)[0] ?? '';

/** What versions are kept for: a group, one item of it, or all of the account. */
export type Tag = string;

/** Stands for all that an account holds. */
export const EVERYTHING: Tag = '*';

/** The state that an account's tags were in at one moment; equal only if nothing touched them in between. */
export type Versions = string;

/** A cached answer. Instants in milliseconds since the epoch. */
export interface Entry {
  /** JSON as the upstream sent it, links to the upstream's pages made relative. */
  readonly text: string;
  /** Where in `text` the origin of the gateway goes: the links' places, ascending. */
  readonly links: readonly number[];
  /** Strong validator of `text`, quoted. */
  readonly etag: string;
  /** When the upstream was asked: an answer to a later question is never replaced by one to an earlier. */
  readonly askedAt: number;
  /** When it answered. */
  readonly storedAt: number;
  /** From when on it is of no use, not even where the upstream fails. */
  readonly expiresAt: number;
  /** What the upstream can be asked with whether it still holds. */
  readonly validators: { readonly etag?: string; readonly lastModified?: string };
}

/** Begins versions that no store gave out: nothing is saved under them. */
const NOWHERE = 'nowhere ';

export const isFromNowhere = (versions: Versions): boolean => versions.startsWith(NOWHERE);

/** What is found where nothing may be answered from a copy or kept; reads share a call only under the same `name`. */
export const foundNowhere = (name: string = crypto.randomUUID()): Found => ({
  entry: undefined,
  versions: NOWHERE + name,
});

export interface Found {
  /** Absent when there is none, or when something touched its tags since. */
  readonly entry: Entry | undefined;
  readonly versions: Versions;
  /** Some instance may have written what the store has not heard of: no copy is given that is not fresh. */
  readonly isDoubtful?: boolean;
}

/** One cached answer's place: whose it is, what it answers, and what invalidates it. */
export interface Place {
  readonly account: AccountId;
  readonly key: string;
  readonly tags: readonly Tag[];
}

/** Answers that may be given again. */
export interface Answers {
  /** `now` in milliseconds since the epoch, for a store without a clock of its own. */
  lookup(place: Place, now?: number): MaybePromise<Found>;
  /** Stores only while `versions` still hold, and in the place of older answers only; says whether it did. */
  save(place: Place, entry: Entry, versions: Versions): MaybePromise<boolean>;
  /** Forgets one answer, and makes reads of it that are under way worthless. */
  drop(place: Place): MaybePromise<void>;
  /**
   * Makes every answer with one of these tags, and every read under way, worthless. A patient one waits a little longer
   * for a store that does not answer.
   */
  touch(account: AccountId, tags: readonly Tag[], isPatient?: boolean): MaybePromise<void>;
}

/** Who asks the upstream, where several instances want the same. Neither method rejects. */
export interface Turns {
  /** Whether it is this instance's turn, for a second or until it passes; who has it may take it again. */
  take(place: Place, versions: Versions): Promise<boolean>;
  pass(place: Place): Promise<void>;
}

/** A definite answer to a write, as its client got it. */
export interface WriteAnswer {
  readonly status: number;
  readonly text: string | null;
}

/** One write that must not happen twice. Instants in milliseconds since the epoch. */
export interface Claim {
  /** Whose key it is. */
  readonly account: AccountId;
  readonly key: string;
  /** Hash of what is asked. */
  readonly fingerprint: string;
  /** Tells its record from that of another request with the same key. */
  readonly nonce: string;
  readonly now: number;
  /** When the request behind it is over, whatever becomes of it: from then on an unsettled record is one of unknown outcome. */
  readonly endsAt: number;
  readonly expiresAt: number;
  /** Its record outlasts all others: no bound of a store makes its key free before its time. */
  readonly lasting: boolean;
}

/** What is known of such a write. */
export interface WriteRecord {
  readonly fingerprint: string;
  readonly outcome: 'under_way' | 'unknown' | WriteAnswer;
}

/** Records of writes, each written before the first byte goes out: one of a write that was sent is never free. */
export interface Records {
  /**
   * Takes the key, if it is free; else comes back with what is known of it.
   * @throws GatewayError `store_unavailable` where no record can be written
   */
  claim(claim: Claim): MaybePromise<WriteRecord | undefined>;
  /**
   * Says that the write is about to be sent. Until then the record may end with the process that has claimed.
   * @throws GatewayError `store_unavailable` where that cannot be written, or the claim is no longer held
   */
  begin(claim: Claim): MaybePromise<void>;
  settle(claim: Claim, outcome: 'unknown' | WriteAnswer): MaybePromise<void>;
  /** Frees the key: nothing happened. */
  release(claim: Claim): MaybePromise<void>;
}

/** A write that touches what is cached, has a key, or buys. Instants in milliseconds since the epoch. */
export interface NewWrite {
  /** Whose it is: an account, for the social calls an address. */
  readonly principal: AccountId;
  /** What it touches. Until the write is over, reads of this are neither answered from a copy nor kept. */
  readonly tags: readonly Tag[];
  /** Tells it from all others. */
  readonly nonce: string;
  readonly now: number;
  /** When its request is over. */
  readonly endsAt: number;
  /** Where nobody learns how it ended, it stays announced until then. */
  readonly until: number;
  /** Of a write with a key. */
  readonly record: Claim | undefined;
  /** Hash of what is bought, of a purchase. */
  readonly purchase: string | undefined;
}

/**
 * How a write ended: answered; refused by the upstream (4xx); without anybody knowing whether it was done; without
 * having been sent.
 */
export type WriteEnd = WriteAnswer | 'refused' | 'unknown' | 'not_sent';

/** A span of time in which something of an account is counted, from the first of it on. */
export interface Window {
  readonly account: AccountId;
  readonly name: string;
  readonly lengthMs: number;
  readonly now: number;
}

export interface WindowUse {
  /** This one included. */
  readonly used: number;
  readonly endsAt: number;
}

/** How much an account may do. */
export interface Limits {
  take(window: Window): MaybePromise<WindowUse>;
  /** The upstream wants no calls of this account until then. */
  hold(account: AccountId, until: number): MaybePromise<void>;
  /** As far as this instance knows, which each visit brings up to date. */
  heldUntil(account: AccountId): number;
}

/** A request of an account: what it counts in, and what it will look for. */
export interface Arrival {
  readonly account: AccountId;
  readonly now: number;
  /** None where no limit applies. */
  readonly window: Pick<Window, 'name' | 'lengthMs'> | undefined;
  readonly places: () => readonly Place[];
}

/** The answers of an account as they stood when a request came; of a place that it did not name, as they stand when asked. */
export type Known = Pick<Answers, 'lookup'>;

export interface Visit {
  readonly use: WindowUse | undefined;
  readonly known: Known;
}

/**
 * State that instances may share. Everything is per account; versions are unguessable or never repeat, so that a store
 * that comes back empty invalidates everything (`contract.md` sections 5 and 7).
 */
export interface Store {
  /** All that a request needs to begin, in one round trip. Comes out without what the store cannot tell. */
  visit(arrival: Arrival): MaybePromise<Visit>;
  readonly answers: Answers;
  /**
   * Takes the key and announces the write, before its first byte goes out; comes back with what stands in its way, which
   * is the record of its key or an equal purchase.
   * @throws GatewayError `store_unavailable`
   */
  beginWrite(write: NewWrite): MaybePromise<WriteRecord | undefined>;
  /** A write of unknown outcome stays announced until its time is over. */
  endWrite(write: NewWrite, end: WriteEnd): MaybePromise<void>;
  /** Absent where readers need not wait for those of other instances. */
  readonly turns?: Turns | undefined;
  readonly records: Records;
  readonly limits: Limits;
}

/** What an in-process store holds; bytes and counts, each of them bounded. */
export interface Usage {
  readonly bytes: number;
  readonly entries: number;
  readonly accounts: number;
  /** Idempotency records: `firm` ones, under way, of unknown outcome or of purchases, are not evicted before their time. */
  readonly records: number;
  readonly firmRecords: number;
  /** Windows of rate limits and budgets, and holds. */
  readonly windows: number;
}
