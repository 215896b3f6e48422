import { createCipheriv, createDecipheriv, createSecretKey, hash, hkdfSync, randomBytes } from 'node:crypto';
import type { Digest, MakeOpener } from '../../core/runtime.ts';
import { ADDRESS_LENGTH, remembered } from '../../store/bounded.ts';
import { addressOwner } from '../../store/port.ts';
import type { Seal } from '../../store/sealed.ts';

const KEY_BYTES = 32;

const derived = (secret: string, purpose: string): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', purpose, KEY_BYTES));

/** One-shot: SHA-512/256 with the key in front is safe from length extension, at a tenth of the cost of `createHmac`. */
export function nodeDigest(secrets: readonly string[], upstream: string): Digest {
  const secret = secrets.at(-1);
  const key = secret === undefined ? randomBytes(KEY_BYTES) : derived(secret, `portico account ${upstream}`);
  const prefix = key.toString('base64url');
  const account = (credential: string) => hash('sha512-256', prefix + credential, 'base64url');
  return {
    gatewayId: `portico-${account('gateway in Via').slice(0, 12)}`, // no credential has a space in it
    account,
    address: remembered((address) => account(addressOwner(address)).slice(0, ADDRESS_LENGTH)),
    body: (text: string) => hash('sha256', text, 'base64url').slice(0, 27),
  };
}

const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * For what instances share: the last secret seals, since during a rotation all instances have it. It opens at once what `Sealing` of
 * core/crypto.ts seals too: WebCrypto takes ten times as long, on another thread.
 */
export function nodeSeal(secrets: readonly string[], purpose: string) {
  // As key objects: with bytes each call takes four times as long.
  const keys = secrets.map((secret) => createSecretKey(derived(secret, purpose)));
  return {
    seal(name, text) {
      const key = keys.at(-1);
      if (!key) throw new Error('nothing is sealed without a secret');
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(name));
      return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    },
    open(name: string, value: Uint8Array): string | undefined {
      for (const key of keys) {
        try {
          const iv = value.subarray(0, IV_BYTES);
          const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
          decipher.setAAD(Buffer.from(name)).setAuthTag(value.subarray(-TAG_BYTES));
          return decipher.update(value.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
        } catch {
          // sealed with another one, or by nobody
        }
      }
      return undefined;
    },
  } satisfies Seal;
}

export const nodeOpener: MakeOpener = (secrets, purpose) => {
  const seal = nodeSeal(secrets, purpose);
  return (additionalData, text) => {
    const value = Buffer.from(text, 'base64url');
    return value.toString('base64url') === text ? seal.open(additionalData, value) : undefined;
  };
};
