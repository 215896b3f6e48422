import type { MaybePromise } from '../core/runtime.ts';
import { type Account, KnownAccounts, knownNotes, type Looked, type Seen } from './account.ts';
import type { Backend, Next, Swapped } from './backend.ts';
import type { Copy } from './copies.ts';
import { CHANGED_MS, type Held, NO_NOTE, type Note } from './note.ts';
import type { AccountId, CacheKey, Entry, Period, WindowUse } from './port.ts';

/** Seals texts with AES-256-GCM, bound to a name. Of several secrets the last one seals, and any of them opens. */
export interface Seal {
  seal(name: string, text: string): MaybePromise<Uint8Array>;
  /** Undefined for what was sealed under another name or by another secret, or was changed since. */
  open(name: string, value: Uint8Array): MaybePromise<string | undefined>;
}

/** Where sealed values of accounts are kept under names: in Redis, or in the account's object. What cannot be asked rejects. */
export interface Shelf {
  /** As in `Backend`. */
  now(): number;
  readonly reliableAt: number;
  /** Names the store that it used last. */
  readonly token: string;
  /** Values under these names, of one moment, in the store whose token is given back. */
  read(
    account: AccountId,
    names: readonly string[],
  ): Promise<{ readonly token: string; readonly values: readonly (Uint8Array | null | undefined)[] }>;
  /** Replaces the note that begins with `seen`, or the missing one (''), and a record in the same step. It ends no sooner than that. */
  swap(account: AccountId, seen: string, next: SealedNext): Promise<Swapped>;
  /**
   * Keeps a copy where the account still has the note that begins with `seen`. Where it has none and `seen` is that of the
   * first note, `note` becomes its note in the same step. The note lives as long as `note` says from now on. A copy of the
   * same version that was asked for later, by less than a minute, stays (both are in the first `COPY_HEAD` bytes). Resolves
   * with whether the note was the one that was seen.
   */
  keep(account: AccountId, seen: string, note: SealedValue, copy: SealedValue | undefined): Promise<boolean>;
  count(account: AccountId, window: Period, many: number): Promise<WindowUse>;
}

export interface SealedValue {
  readonly name: string;
  readonly value: Uint8Array;
  readonly lifeMs: number;
}

export interface SealedNext {
  /** Begins with `REV` characters that are its own. */
  readonly note: SealedValue;
  /** The record is removed where there is no value. */
  readonly record?: { readonly name: string; readonly value?: Uint8Array; readonly lifeMs: number } | undefined;
  readonly isBeginning: boolean;
}

/** Characters at the head of a sealed note that tell it from others. */
export const REV = 12;
export const NOTE = 'note';
/** The head of each first note of an account, which is made with its first copy and says as much as none. */
export const FIRST_REV = '_first_note_';

/** Bytes at the head of a sealed copy: 16 that stand for its version, and when it was asked for, as a big-endian double. */
export const COPY_HEAD = 24;
const VERSION_BYTES = 16;

/** Copies of an account are in 256 places, by the hash of their key, so that no account can fill the store. */
const MAX_COPY_BYTES = 32_768;

interface Known extends Seen {
  readonly seen: string;
  readonly bytes: number;
}

interface Tools {
  readonly seal: Seal;
  /** Keyed hash of a text, at least 16 characters. */
  readonly nameOf: (text: string) => MaybePromise<string>;
  /** How long a note is kept that has a copy under it: longer than any copy. */
  readonly noteMs: number;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Notes, records and copies as a shelf keeps them: sealed, under hashed names. */
export class SealedNotes implements Backend {
  readonly isHere = false;
  readonly accounts = new KnownAccounts();
  readonly noteMs = CHANGED_MS;
  readonly #shelf: Shelf;
  readonly #tools: Tools;
  readonly #known = knownNotes<Known>(({ bytes }) => bytes);

  constructor(shelf: Shelf, tools: Tools) {
    this.#shelf = shelf;
    this.#tools = tools;
  }

  now(): number {
    return this.#shelf.now();
  }

  get reliableAt(): number {
    return this.#shelf.reliableAt;
  }

  async look(account: Account, keys: readonly CacheKey[] = [], key?: string): Promise<Looked> {
    const places = keys.map(this.#placeOf);
    const named = key === undefined ? [] : [this.#recordName(key)];
    const names = await Promise.all([...places, ...named]);
    const { token, values } = await this.#shelf.read(account.id, [NOTE, ...names]);
    const [note, ...others] = values;
    const known = note ? await this.#open(account, token, note) : { note: NO_NOTE, seen: '', token, bytes: 0 };
    this.#known.set(account.id, known);
    const copies = await Promise.all(
      keys.map(({ key: of }, i) => this.#openCopy(account, of, names[i] ?? '', others[i])),
    );
    const held = await this.#openRecord(account, names.at(-1) ?? '', named.length > 0 ? others.at(-1) : undefined);
    return { ...known, copies, held };
  }

  peek(account: Account): Known | undefined {
    const known = this.#known.get(account.id);
    return known?.token === this.#shelf.token ? known : undefined;
  }

  async swap(account: Account, { seen, token }: Seen, next: Next): Promise<Swapped> {
    const { rev, value } = await this.#seal(account, next.note);
    const record = await this.#sealRecord(account, next.record);
    if (token !== this.#shelf.token) return 'other'; // the store is another one meanwhile
    const swapped = await this.#shelf.swap(account.id, String(seen), {
      note: { name: NOTE, value, lifeMs: next.lifeMs },
      record,
      isBeginning: next.isBeginning === true,
    });
    if (swapped === 'done') this.#known.set(account.id, { note: next.note, seen: rev, token, bytes: value.length });
    return swapped;
  }

  count(account: Account, window: Period, many: number): Promise<WindowUse> {
    return this.#shelf.count(account.id, window, many);
  }

  async keep(account: Account, key: CacheKey, { entry, version, askedAt }: Copy): Promise<boolean> {
    const seen = this.peek(account)?.seen;
    if (seen === undefined) return false;
    const { text, ...head } = entry;
    const place = await this.#placeOf(key);
    const told = JSON.stringify({ ...head, version, askedAt, key: key.key });
    const sealed = await this.#tools.seal.seal(`${account.id} ${place}`, `${told}\n${text}`);
    const value = new Uint8Array(COPY_HEAD + sealed.length);
    value.set(encoder.encode((await this.#tools.nameOf(`version ${version}`)).slice(0, VERSION_BYTES)));
    new DataView(value.buffer).setFloat64(VERSION_BYTES, askedAt);
    value.set(sealed, COPY_HEAD);
    const copy = value.length > MAX_COPY_BYTES ? undefined : { name: place, value, lifeMs: key.lifeMs };
    const first = await this.#seal(account, NO_NOTE, FIRST_REV);
    const note = { name: NOTE, value: first.value, lifeMs: this.#tools.noteMs };
    return this.#shelf.keep(account.id, seen || FIRST_REV, note, copy);
  }

  async #seal(account: Account, note: Note, rev = crypto.randomUUID().slice(-REV)) {
    const sealed = await this.#tools.seal.seal(`${account.id} ${NOTE}`, JSON.stringify(note));
    const value = new Uint8Array(REV + sealed.length);
    value.set(encoder.encode(rev));
    value.set(sealed, REV);
    return { rev, value };
  }

  /** @throws Error if it cannot be opened: the account has no store until its note ends */
  async #open(account: Account, token: string, value: Uint8Array): Promise<Known> {
    const seen = decoder.decode(value.subarray(0, REV));
    const known = this.#known.get(account.id);
    if (known?.seen === seen && known.token === token) return known;
    const text = await this.#tools.seal.open(`${account.id} ${NOTE}`, value.subarray(REV));
    if (text === undefined) throw new Error('a note cannot be opened');
    return { note: JSON.parse(text) as Note, seen, token, bytes: value.length }; // written by `#seal`
  }

  async #sealRecord(account: Account, record: Next['record']): Promise<SealedNext['record']> {
    if (!record) return undefined;
    const { key, held, lifeMs } = record;
    const name = await this.#recordName(key);
    if (!held) return { name, lifeMs };
    return { name, lifeMs, value: await this.#tools.seal.seal(`${account.id} ${name}`, JSON.stringify(held)) };
  }

  /** One that cannot be opened is of unknown outcome: its key stays taken. */
  async #openRecord(account: Account, name: string, value: Uint8Array | null | undefined): Promise<Held | undefined> {
    if (!value) return undefined;
    const text = await this.#tools.seal.open(`${account.id} ${name}`, value);
    if (text === undefined) return { nonce: '', record: { fingerprint: '', outcome: 'unknown' } };
    return JSON.parse(text) as Held; // written by `#sealRecord`, hence of this shape
  }

  /** Another key's copy may be in its place; one that was stored later than now is from before the store's clock was set back. */
  async #openCopy(
    account: Account,
    key: string,
    place: string,
    value: Uint8Array | null | undefined,
  ): Promise<Copy | undefined> {
    if (!value) return undefined;
    const text = await this.#tools.seal.open(`${account.id} ${place}`, value.subarray(COPY_HEAD));
    if (text === undefined) return undefined;
    const end = text.indexOf('\n');
    // Written by `keep`, hence of this shape.
    const told = JSON.parse(text.slice(0, end)) as Omit<Entry, 'text'> &
      Pick<Copy, 'version' | 'askedAt'> & { key: string };
    const { version, askedAt, key: of, ...head } = told;
    if (of !== key || head.storedAt > this.now() + 1_000) return undefined;
    return { version, askedAt, entry: { ...head, text: text.slice(end + 1) } };
  }

  /** 64 characters by 4. */
  #placeOf = async ({ key }: CacheKey): Promise<string> => {
    const hash = await this.#tools.nameOf(`copy ${key}`);
    return `c:${hash.charAt(0)}${hash.charCodeAt(1) % 4}`;
  };

  async #recordName(key: string): Promise<string> {
    return `r:${(await this.#tools.nameOf(`record ${key}`)).slice(0, 16)}`;
  }
}
