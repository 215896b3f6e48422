import type { Digest } from '../../core/runtime.ts';

const encoder = new TextEncoder();

/** WebCrypto hashes. The key is the isolate's own, made when it is first needed: not before a request may be. */
export function webDigest(): Digest {
  let key: Promise<CryptoKey> | undefined;
  return {
    async account(credential) {
      key ??= makeKey();
      return base64Url(await crypto.subtle.sign('HMAC', await key, encoder.encode(credential)));
    },
    body: async (text) => base64Url(await crypto.subtle.digest('SHA-256', encoder.encode(text))).slice(0, 27),
  };
}

function makeKey(): Promise<CryptoKey> {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
}

function base64Url(bytes: ArrayBuffer): string {
  const base64 = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
