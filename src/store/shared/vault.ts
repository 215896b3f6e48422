import { base64Url } from '../../core/base64.ts';
import { deriveKey, HMAC } from '../../core/hkdf.ts';
import type { MaybePromise } from '../../core/runtime.ts';
import { boundedMap } from '../bounded.ts';

/** Names that are asked for again and again: keys and tags, without their account. */
const MAX_NAMES_LENGTH = 4_194_304;
const NAME_LENGTH = 100;
const IV_BYTES = 12;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Gives what is kept outside this process a name that tells nothing. */
export type Namer = (text: string) => MaybePromise<string>;

/**
 * Seals values with AES-256-GCM, bound to the key they are kept under, and hashes names with HMAC-SHA-256. The keys of
 * both are derived from the secrets by HKDF (RFC 5869): the first seals, all open.
 */
export class Vault {
  /** One for each secret, as accounts have a name for each. */
  readonly namers: readonly Namer[];
  readonly #sealing: readonly Promise<CryptoKey>[];

  constructor(secrets: readonly string[]) {
    this.namers = secrets.map(namerOf);
    this.#sealing = secrets.map((secret) => deriveKey(secret, SEALING));
  }

  /** What comes out opens under the same `place` only. `index` is that of the secret. */
  async seal(place: string, text: string, index = 0): Promise<Uint8Array<ArrayBuffer>> {
    const key = this.#sealing[index];
    if (!key) throw new Error('nothing is sealed without a secret');
    const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
    const sealed = await crypto.subtle.encrypt(algorithmOf(iv, place), await key, encoder.encode(text));
    const value = new Uint8Array(IV_BYTES + sealed.byteLength);
    value.set(iv);
    value.set(new Uint8Array(sealed), IV_BYTES);
    return value;
  }

  /** Nothing where it was sealed for another place, with a secret that is not listed, or changed since. */
  async open(place: string, value: Uint8Array): Promise<string | undefined> {
    const bytes = new Uint8Array(value); // a copy of its own: WebCrypto takes no view of a shared buffer
    const algorithm = algorithmOf(bytes.subarray(0, IV_BYTES), place);
    for (const key of this.#sealing) {
      try {
        return decoder.decode(await crypto.subtle.decrypt(algorithm, await key, bytes.subarray(IV_BYTES)));
      } catch {
        // not this one
      }
    }
    return undefined;
  }
}

const algorithmOf = (iv: Uint8Array<ArrayBuffer>, place: string) => ({
  name: 'AES-GCM',
  iv,
  additionalData: encoder.encode(place),
});

const SEALING = {
  info: 'portico store seal',
  algorithm: { name: 'AES-GCM', length: 256 },
  usages: ['encrypt', 'decrypt'] satisfies KeyUsage[],
};
const NAMING = { info: 'portico store name', algorithm: HMAC, usages: ['sign'] satisfies KeyUsage[] };

function namerOf(secret: string): Namer {
  const key = deriveKey(secret, NAMING);
  const known = boundedMap<string, string>({
    max: MAX_NAMES_LENGTH,
    sizeOf: (_, text) => text.length + NAME_LENGTH,
  });
  const make = async (text: string) => {
    const hash = await crypto.subtle.sign('HMAC', await key, encoder.encode(text));
    const name = base64Url(hash).slice(0, 27);
    known.set(text, name);
    return name;
  };
  return (text) => known.get(text) ?? make(text);
}
