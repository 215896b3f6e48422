import { base64Url, type Bytes, deriveKey, HMAC, Sealing } from '../../core/crypto.ts';
import { LRUCache } from '../bounded.ts';
import { type CacheKey, type Entry, EVERYTHING, type NewWrite, type Tag, type WriteRecord } from '../store.ts';
import { MAX_VALUE_BYTES } from './engine.ts';
import type { WriteBegin, WriteEnded } from '../writes.ts';

/** Of remembered names, in characters. */
const MAX_NAMES_LENGTH = 4_194_304;
/** 96 bits. Two equal names within an account would only replace each other's copies. */
const NAME_LENGTH = 16;

const encoder = new TextEncoder();

/** Copies and records can be opened under their own names only. */
const dataOfCopy = ({ account, key }: CacheKey) => `copy ${account} ${key}`;
const dataOfRecord = ({ account, key }: NewWrite) => `record ${account} ${key}`;

/**
 * Copies, records and their names as an engine gets them: sealed with AES-256-GCM and additional data, and hashed with
 * HMAC-SHA-256. Keys are derived from the secrets by HKDF (RFC 5869): the last secret names everything and seals
 * records, the first seals copies, any opens.
 */
export class Sealer {
  readonly #naming: Promise<CryptoKey>;
  readonly #sealing: Sealing;
  readonly #names = new LRUCache<string, string>({
    maxSize: MAX_NAMES_LENGTH,
    sizeCalculation: (name, text) => text.length + name.length + 100,
  });

  /** `upstream`: the normalized base URL. Two upstreams over one store share nothing. */
  constructor(secrets: readonly string[], upstream: string) {
    const info = `portico store name ${upstream}`;
    this.#naming = deriveKey(secrets.at(-1) ?? '', { info, algorithm: HMAC, usages: ['sign'] });
    this.#sealing = new Sealing(secrets, 'portico store seal');
  }

  async nameOf(text: string): Promise<string> {
    return this.#names.get(text) ?? this.#makeName(text);
  }

  namesOf(tags: readonly Tag[]): Promise<readonly string[]> {
    return Promise.all(tags.map(async (tag) => (tag === EVERYTHING ? tag : this.nameOf(tag))));
  }

  /** The first tag is the key's own, for copies that are dropped alone. No other begins with `=`. */
  async namedKey({ key, tags }: CacheKey) {
    return { key: await this.nameOf(key), tags: await this.namesOf([`=${key}`, ...tags]) };
  }

  /** One line of JSON, then the body as it is, which need not be escaped that way. */
  sealCopy(key: CacheKey, { text, links, etag, validators, maxFreshMs }: Entry): Promise<Bytes> {
    const head = JSON.stringify({ links, etag, validators, maxFreshMs });
    return this.#sealing.seal(dataOfCopy(key), `${head}\n${text}`);
  }

  /** Undefined if it cannot be opened. */
  async openCopy(key: CacheKey, value: Uint8Array, storedAt: number): Promise<Entry | undefined> {
    const opened = await this.#sealing.open(dataOfCopy(key), value);
    if (opened === undefined) return undefined;
    const end = opened.indexOf('\n');
    // Written by `sealCopy`, hence of this shape.
    const head = JSON.parse(opened.slice(0, end)) as Omit<Entry, 'text' | 'storedAt'>;
    return { ...head, storedAt, text: opened.slice(end + 1) };
  }

  /** The beginning or the end of a write. */
  sealWrite(write: NewWrite, plain: WriteBegin<WriteRecord>): Promise<WriteBegin>;
  sealWrite(write: NewWrite, plain: WriteEnded<WriteRecord>): Promise<WriteEnded>;
  async sealWrite(write: NewWrite, plain: WriteBegin<WriteRecord> | WriteEnded<WriteRecord>): Promise<unknown> {
    const { tags, purchase, record } = plain;
    const value = record?.value && (await this.#sealRecord(write, record.value));
    return {
      ...plain,
      tags: await this.namesOf(tags),
      purchase: purchase === undefined ? undefined : await this.nameOf(`purchase ${purchase}`),
      record: record && { ...record, key: await this.nameOf(`record ${record.key}`), value },
    };
  }

  /** One that cannot be opened is of unknown outcome: its key stays taken. */
  async openRecord(write: NewWrite, value: Uint8Array): Promise<WriteRecord> {
    const text = await this.#sealing.open(dataOfRecord(write), value);
    if (text === undefined) return { fingerprint: write.fingerprint, outcome: 'unknown' };
    return JSON.parse(text) as WriteRecord; // written by `#sealRecord`, hence of this shape
  }

  /** An answer that is too large is recorded as of unknown outcome. */
  async #sealRecord(write: NewWrite, record: WriteRecord): Promise<Bytes> {
    const value = await this.#sealing.seal(dataOfRecord(write), JSON.stringify(record), 'last');
    return value.length > MAX_VALUE_BYTES ? this.#sealRecord(write, { ...record, outcome: 'unknown' }) : value;
  }

  async #makeName(text: string): Promise<string> {
    const hash = await crypto.subtle.sign('HMAC', await this.#naming, encoder.encode(text));
    const name = base64Url(hash).slice(0, NAME_LENGTH);
    this.#names.set(text, name);
    return name;
  }
}
