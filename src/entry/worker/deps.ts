import { type Config, LEVELS } from '../../config.ts';
import { base64Url, deriveKey, HMAC, Sealing } from '../../core/crypto.ts';
import type { LogFields, Logger } from '../../core/logger.ts';
import type { Clock, Digest } from '../../core/runtime.ts';
import type { DocsAssets } from '../../routes/docs.ts';
import { ADDRESS_LENGTH, remembered } from '../../store/bounded.ts';
import { addressOwner } from '../../store/port.ts';
import type { Seal } from '../../store/sealed.ts';

export const clock: Clock = {
  now: () => Date.now(),
  wall: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

const encoder = new TextEncoder();

/** WebCrypto hashes. The last secret names accounts, each upstream's by its own key; without one, the isolate's does. */
export function webDigest(secrets: readonly string[], upstream: string): Digest {
  const secret = secrets.at(-1) ?? crypto.randomUUID() + crypto.randomUUID();
  const info = `portico account ${upstream}`;
  let key: Promise<CryptoKey> | undefined;
  const account = async (credential: string) => {
    key ??= deriveKey(secret, { info, algorithm: HMAC, usages: ['sign'] });
    return base64Url(await crypto.subtle.sign('HMAC', await key, encoder.encode(credential)));
  };
  return {
    gatewayId: `portico-${crypto.randomUUID().slice(-12)}`,
    account,
    address: remembered(async (address) => (await account(addressOwner(address))).slice(0, ADDRESS_LENGTH)),
    body: async (text) => base64Url(await crypto.subtle.digest('SHA-256', encoder.encode(text))).slice(0, 27),
  };
}

/** By WebCrypto. */
export function webSeal(secrets: readonly string[]): Seal {
  const sealing = new Sealing(secrets, 'portico notes');
  return {
    seal: (name, text) => sealing.seal(name, text, 'last'),
    open: (name, value) => sealing.open(name, value),
  };
}

/** The same JSON lines as on Node, through the platform's log. */
export function consoleLogger(level: Config['logLevel']): Logger {
  const { log, warn, error } = console;
  const write = (line: (text: string) => void, name: Config['logLevel']) => (fields: LogFields, message: string) => {
    if (LEVELS.indexOf(name) < LEVELS.indexOf(level)) return;
    line(JSON.stringify({ level: name, time: new Date().toISOString(), ...fields, msg: message }));
  };
  const [info, fail] = [write(log, 'info'), write(error, 'error')];
  return {
    info,
    warn: write(warn, 'warn'),
    error: fail,
    request: (fields) => (fields.status < 500 ? info : fail)(fields, 'request'),
  };
}

/** The static assets that the build has made. */
export interface AssetsBinding {
  fetch(request: Request): Promise<Response>;
}

export const assetsOf = (binding: AssetsBinding | undefined): DocsAssets => ({
  async read(name) {
    const answer = await binding?.fetch(new Request(`https://assets.invalid/docs/${name}`));
    return answer?.ok ? new Uint8Array(await answer.arrayBuffer()) : null;
  },
});
