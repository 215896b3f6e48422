import { hash, hkdfSync, randomBytes } from 'node:crypto';
import type { Digest } from '../../core/runtime.ts';

const KEY_BYTES = 32;

/**
 * One-shot hashes; SHA-512/256 with the key in front cannot be extended, and costs a tenth of `createHmac`. The last
 * secret names accounts, each upstream's by a key of its own; without a secret the key is the process's.
 */
export function nodeDigest(secrets: readonly string[], upstream: string): Digest {
  const secret = secrets.at(-1);
  const key =
    secret === undefined
      ? randomBytes(KEY_BYTES)
      : Buffer.from(hkdfSync('sha256', secret, '', `portico account ${upstream}`, KEY_BYTES));
  const prefix = key.toString('base64url');
  const now = {
    account: (credential: string) => hash('sha512-256', prefix + credential, 'base64url'),
    body: (text: string) => hash('sha256', text, 'base64url').slice(0, 27),
  };
  return { account: async (credential) => now.account(credential), body: async (text) => now.body(text), now };
}
