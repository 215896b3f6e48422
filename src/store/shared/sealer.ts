import { base64Url, deriveKey, HMAC } from '../../core/crypto.ts';
import { lruMap } from '../bounded.ts';

/** Of remembered names, in characters. */
const MAX_NAMES_LENGTH = 4_194_304;
/** 96 bits. Two equal names within an account would only replace each other's copies. */
const NAME_LENGTH = 16;
const IV_BYTES = 12;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * Seals values with AES-256-GCM and additional data, and hashes names with HMAC-SHA-256. Keys are derived from the
 * secrets by HKDF (RFC 5869): the last secret names everything and seals records, the first seals copies, any opens.
 */
export class Sealer {
  readonly #naming: Promise<CryptoKey>;
  readonly #sealing: readonly Promise<CryptoKey>[];
  readonly #names = lruMap<string, string>({
    max: MAX_NAMES_LENGTH,
    sizeOf: (name, text) => text.length + name.length + 100,
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

  sealCopy(additionalData: string, text: string): Promise<Uint8Array<ArrayBuffer>> {
    return this.#seal(this.#sealing[0], additionalData, text);
  }

  sealRecord(additionalData: string, text: string): Promise<Uint8Array<ArrayBuffer>> {
    return this.#seal(this.#sealing.at(-1), additionalData, text);
  }

  /** Undefined where it was sealed with other data or a secret that is not listed, or was changed since. */
  async open(additionalData: string, value: Uint8Array): Promise<string | undefined> {
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

  async #makeName(text: string): Promise<string> {
    const hash = await crypto.subtle.sign('HMAC', await this.#naming, encoder.encode(text));
    const name = base64Url(hash).slice(0, NAME_LENGTH);
    this.#names.set(text, name);
    return name;
  }

  async #seal(
    key: Promise<CryptoKey> | undefined,
    additionalData: string,
    text: string,
  ): Promise<Uint8Array<ArrayBuffer>> {
    if (!key) throw new Error('nothing is sealed without a secret');
    const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
    const sealed = await crypto.subtle.encrypt(algorithmOf(iv, additionalData), await key, encoder.encode(text));
    const value = new Uint8Array(IV_BYTES + sealed.byteLength);
    value.set(iv);
    value.set(new Uint8Array(sealed), IV_BYTES);
    return value;
  }
}

const algorithmOf = (iv: Uint8Array<ArrayBuffer>, additionalData: string) => ({
  name: 'AES-GCM',
  iv,
  additionalData: encoder.encode(additionalData),
});

const SEALING = {
  info: 'portico store seal',
  algorithm: { name: 'AES-GCM', length: 256 },
  usages: ['encrypt', 'decrypt'] satisfies KeyUsage[],
};
