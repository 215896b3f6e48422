import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import type { Digest, MakeOpener } from '../../core/runtime.ts';
import { ADDRESS_LENGTH, remembered } from '../../store/bounded.ts';
import { addressOwner } from '../../store/port.ts';
import type { Seal } from '../../store/sealed.ts';

const KEY_BYTES = 32;

/** One-shot: SHA-512/256 with the key in front is safe from length extension, at a tenth of the cost of `createHmac`. */
export function nodeDigest(secrets: readonly string[], upstream: string): Digest {
  const secret = secrets.at(-1);
  const key =
    secret === undefined
      ? randomBytes(KEY_BYTES)
      : Buffer.from(hkdfSync('sha256', secret, '', `portico account ${upstream}`, KEY_BYTES));
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

/** As key objects: with bytes each call takes four times as long. */
const keysOf = (secrets: readonly string[], purpose: string) =>
  secrets.map((secret) => createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', purpose, KEY_BYTES))));

/** What `Sealing` of core/crypto.ts seals too, opened at once: WebCrypto takes ten times as long, on another thread. */
function openedBy(keys: readonly KeyObject[], additionalData: string, value: Uint8Array): string | undefined {
  if (value.length <= IV_BYTES + TAG_BYTES) return undefined;
  for (const key of keys) {
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, value.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(additionalData)).setAuthTag(value.subarray(-TAG_BYTES));
      return decipher.update(value.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    } catch {
      // sealed with another one
    }
  }
  return undefined;
}

export const nodeOpener: MakeOpener = (secrets, purpose) => {
  const keys = keysOf(secrets, purpose);
  return (additionalData, text) => {
    const value = Buffer.from(text, 'base64url');
    return value.toString('base64url') === text ? openedBy(keys, additionalData, value) : undefined;
  };
};

/** For what instances share: the last secret seals, since during a rotation all instances have it. */
export function nodeSeal(secrets: readonly string[], purpose: string): Seal {
  const keys = keysOf(secrets, purpose);
  const key = keys.at(-1);
  if (!key) throw new Error('nothing is sealed without a secret');
  return {
    seal(name, text) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(name));
      return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    },
    open: (name, value) => openedBy(keys, name, value),
  };
}
