const encoder = new TextEncoder();
const decoder = new TextDecoder();

export type Bytes = Uint8Array<ArrayBuffer>;

/** Derives a key from a secret (HKDF, RFC 5869). `info` says what it is for: each use has an independent key. */
export async function deriveKey(
  secret: string,
  { info, algorithm, usages }: { info: string; algorithm: AesKeyGenParams | HmacKeyGenParams; usages: KeyUsage[] },
): Promise<CryptoKey> {
  const material = await crypto.subtle.importKey('raw', encoder.encode(secret), 'HKDF', false, ['deriveKey']);
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: encoder.encode(info) };
  return crypto.subtle.deriveKey(hkdf, material, algorithm, false, usages);
}

/** Keys for HMAC-SHA-256. */
export const HMAC = { name: 'HMAC', hash: 'SHA-256', length: 256 } as const;

/** Base64 for URLs, without padding (RFC 4648, section 5). */
export function base64Url(bytes: ArrayBuffer): string {
  const base64 = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** The bytes of a text that `base64Url` made; undefined for any other text. */
export function bytesOfBase64Url(text: string): Bytes | undefined {
  if (!/^[\w-]+$/.test(text) || text.length % 4 === 1) return undefined;
  const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
  return base64Url(bytes.buffer) === text ? bytes : undefined;
}

const IV_BYTES = 12;

/** Seals texts with AES-256-GCM and additional data. Keys are derived from the secrets by HKDF, for one purpose each. */
export class Sealing {
  readonly #keys: readonly Promise<CryptoKey>[];

  constructor(secrets: readonly string[], purpose: string) {
    const algorithm = { name: 'AES-GCM', length: 256 };
    this.#keys = secrets.map((secret) =>
      deriveKey(secret, { info: purpose, algorithm, usages: ['encrypt', 'decrypt'] }),
    );
  }

  /** Seals with the first secret, or the last. Returns the initialization vector and the sealed text. */
  async seal(additionalData: string, text: string, by: 'first' | 'last' = 'first'): Promise<Bytes> {
    const key = this.#keys.at(by === 'first' ? 0 : -1);
    if (!key) throw new Error('nothing is sealed without a secret');
    const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
    const sealed = await crypto.subtle.encrypt(algorithmOf(iv, additionalData), await key, encoder.encode(text));
    const value = new Uint8Array(IV_BYTES + sealed.byteLength);
    value.set(iv);
    value.set(new Uint8Array(sealed), IV_BYTES);
    return value;
  }

  /** Opens a sealed value. Undefined if it was changed, or sealed with other data or a secret that is not listed. */
  async open(additionalData: string, value: Uint8Array): Promise<string | undefined> {
    const bytes = new Uint8Array(value); // WebCrypto takes no view of a shared buffer
    const algorithm = algorithmOf(bytes.subarray(0, IV_BYTES), additionalData);
    for (const key of this.#keys) {
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
