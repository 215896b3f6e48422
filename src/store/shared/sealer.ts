import { base64Url, deriveKey, HMAC } from '../../core/crypto.ts';
import { LRUCache } from '../bounded.ts';
import { type CacheKey, type Entry, EVERYTHING, type NewWrite, type Tag, type WriteRecord } from '../store.ts';
import { MAX_VALUE_BYTES, type WriteBegun } from './engine.ts';

/** Of remembered names, in characters. */
const MAX_NAMES_LENGTH = 4_194_304;
/** 96 bits. Two equal names within an account would only replace each other's copies. */
const NAME_LENGTH = 16;
const IV_BYTES = 12;
const SEALING = {
  info: 'portico store seal',
  algorithm: { name: 'AES-GCM', length: 256 },
  usages: ['encrypt', 'decrypt'] satisfies KeyUsage[],
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

type SealedRecord = Extract<WriteBegun, { is: 'record' }>;
type Bytes = Uint8Array<ArrayBuffer>;

/** Copies and records can be opened under their own names only. */
const dataOfCopy = ({ account, key }: CacheKey) => `copy ${account} ${key}`;
const dataOfRecord = ({ principal, key }: NewWrite) => `record ${principal} ${key}`;

/**
 * Copies, records and their names as an engine gets them: sealed with AES-256-GCM and additional data, and hashed with
 * HMAC-SHA-256. Keys are derived from the secrets by HKDF (RFC 5869): the last secret names everything and seals
 * records, the first seals copies, any opens.
 */
export class Sealer {
  readonly #naming: Promise<CryptoKey>;
  readonly #sealing: readonly Promise<CryptoKey>[];
  readonly #names = new LRUCache<string, string>({
    maxSize: MAX_NAMES_LENGTH,
    sizeCalculation: (name, text) => text.length + name.length + 100,
  });

  /** `upstream`: the normalized base URL. Two upstreams over one store share nothing. */
  constructor(secrets: readonly string[], upstream: string) {
    const info = `portico store name ${upstream}`;
    this.#naming = deriveKey(secrets.at(-1) ?? '', { info, algorithm: HMAC, usages: ['sign'] });
    this.#sealing = secrets.map((secret) => deriveKey(secret, SEALING));
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
    return this.#seal(this.#sealing[0], dataOfCopy(key), `${head}\n${text}`);
  }

  /** Undefined if it cannot be opened. */
  async openCopy(key: CacheKey, value: Uint8Array, storedAt: number): Promise<Entry | undefined> {
    const opened = await this.#open(dataOfCopy(key), value);
    if (opened === undefined) return undefined;
    const end = opened.indexOf('\n');
    // Written by `sealCopy`, hence of this shape.
    const head = JSON.parse(opened.slice(0, end)) as Omit<Entry, 'text' | 'storedAt'>;
    return { ...head, storedAt, text: opened.slice(end + 1) };
  }

  /** An answer that is too large is recorded as of unknown outcome. */
  async sealRecord(write: NewWrite, outcome: WriteRecord['outcome']): Promise<Bytes> {
    const record: WriteRecord = { fingerprint: write.fingerprint, outcome };
    const value = await this.#seal(this.#sealing.at(-1), dataOfRecord(write), JSON.stringify(record));
    return value.length > MAX_VALUE_BYTES ? this.sealRecord(write, 'unknown') : value;
  }

  /** One that cannot be opened is of unknown outcome: its key stays taken. */
  async openRecord(write: NewWrite, { value, isOver }: SealedRecord): Promise<WriteRecord> {
    const text = await this.#open(dataOfRecord(write), value);
    if (text === undefined) return { fingerprint: write.fingerprint, outcome: 'unknown' };
    const record = JSON.parse(text) as WriteRecord; // written by `sealRecord`, hence of this shape
    return isOver ? { ...record, outcome: 'unknown' } : record;
  }

  async #makeName(text: string): Promise<string> {
    const hash = await crypto.subtle.sign('HMAC', await this.#naming, encoder.encode(text));
    const name = base64Url(hash).slice(0, NAME_LENGTH);
    this.#names.set(text, name);
    return name;
  }

  async #seal(key: Promise<CryptoKey> | undefined, additionalData: string, text: string): Promise<Bytes> {
    if (!key) throw new Error('nothing is sealed without a secret');
    const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
    const sealed = await crypto.subtle.encrypt(algorithmOf(iv, additionalData), await key, encoder.encode(text));
    const value = new Uint8Array(IV_BYTES + sealed.byteLength);
    value.set(iv);
    value.set(new Uint8Array(sealed), IV_BYTES);
    return value;
  }

  /** Undefined where it was sealed with other data or a secret that is not listed, or was changed since. */
  async #open(additionalData: string, value: Uint8Array): Promise<string | undefined> {
    const bytes = new Uint8Array(value); // WebCrypto takes no view of a shared buffer
    const algorithm = algorithmOf(bytes.subarray(0, IV_BYTES), additionalData);
    for (const key of this.#sealing) {
      try {
        return decoder.decode(await crypto.subtle.decrypt(algorithm, await key, bytes.subarray(IV_BYTES)));
      } catch {
        // sealed with another one
      }
    }
    return undefined;
  }
}

const algorithmOf = (iv: Bytes, additionalData: string) => ({
  name: 'AES-GCM',
  iv,
  additionalData: encoder.encode(additionalData),
});
