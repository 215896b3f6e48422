import { hash, hkdfSync, randomBytes } from 'node:crypto';
import type { Digest } from '../../core/runtime.ts';

const KEY_BYTES = 32;

/**
 * One-shot hashes; SHA-512/256 with the key in front cannot be extended, and costs a tenth of `createHmac`. Without a
 * secret the key is the process's own.
 */
export function nodeDigest(secrets: readonly string[]): Digest {
  const keys = secrets.length > 0 ? secrets.map(keyOf) : [randomBytes(KEY_BYTES).toString('base64url')];
  const [first = '', ...others] = keys;
  return {
    account: (credential) =>
      others.reduce((names, key) => `${names}.${nameWith(key, credential)}`, nameWith(first, credential)),
    body: (text) => hash('sha256', text, 'base64url').slice(0, 27),
  };
}

const nameWith = (key: string, credential: string) => hash('sha512-256', key + credential, 'base64url');

const keyOf = (secret: string) =>
  Buffer.from(hkdfSync('sha256', secret, '', 'portico account', KEY_BYTES)).toString('base64url');
