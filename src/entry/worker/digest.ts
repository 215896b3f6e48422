import { base64Url, deriveKey, HMAC } from '../../core/crypto.ts';
import type { Digest } from '../../core/runtime.ts';

const encoder = new TextEncoder();

/**
 * WebCrypto hashes. The last secret names accounts, each upstream's by a key of its own; without a secret the key is
 * the isolate's, made when it is first needed.
 */
export function webDigest(secrets: readonly string[], upstream: string): Digest {
  const secret = secrets.at(-1);
  const info = `portico account ${upstream}`;
  let key: Promise<CryptoKey> | undefined;
  return {
    async account(credential) {
      key ??= secret === undefined ? makeKey() : deriveKey(secret, { info, algorithm: HMAC, usages: ['sign'] });
      return base64Url(await crypto.subtle.sign('HMAC', await key, encoder.encode(credential)));
    },
    body: async (text) => base64Url(await crypto.subtle.digest('SHA-256', encoder.encode(text))).slice(0, 27),
  };
}

function makeKey(): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', crypto.getRandomValues(new Uint8Array(32)), HMAC, false, ['sign']);
}
