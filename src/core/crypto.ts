const encoder = new TextEncoder();

interface KeyUse {
  /** What the key is for: each use has an independent key. */
  readonly info: string;
  readonly algorithm: AesKeyGenParams | HmacKeyGenParams;
  readonly usages: KeyUsage[];
}

/** Derives a key from a secret (HKDF, RFC 5869). */
export async function deriveKey(secret: string, { info, algorithm, usages }: KeyUse): Promise<CryptoKey> {
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
