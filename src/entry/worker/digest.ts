import { base64Url } from '../../core/base64.ts';
import { deriveKey, HMAC } from '../../core/hkdf.ts';
import type { Digest } from '../../core/runtime.ts';

const encoder = new TextEncoder();
const NAMING = { info: 'portico account', algorithm: HMAC, usages: ['sign'] satisfies KeyUsage[] };

/** WebCrypto hashes. A name for each secret; without one the key is the isolate's own, made when it is first needed. */
export function webDigest(secrets: readonly string[]): Digest {
  let keys: readonly Promise<CryptoKey>[] | undefined;
  return {
    async account(credential) {
      keys ??= secrets.length > 0 ? secrets.map((secret) => deriveKey(secret, NAMING)) : [makeKey()];
      const bytes = encoder.encode(credential);
      const names = keys.map(async (key) => base64Url(await crypto.subtle.sign('HMAC', await key, bytes)));
      return (await Promise.all(names)).join('.');
    },
    body: async (text) => base64Url(await crypto.subtle.digest('SHA-256', encoder.encode(text))).slice(0, 27),
  };
}

function makeKey(): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', crypto.getRandomValues(new Uint8Array(32)), HMAC, false, ['sign']);
}
