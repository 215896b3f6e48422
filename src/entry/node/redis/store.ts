import { storeAddressOf } from '../../../core/store-address.ts';
import { Connection, type Watch } from './connection.ts';
import { RedisEngine } from './engine.ts';
import { Shares } from './shares.ts';

interface RedisStoreOptions {
  readonly url: string;
  /** How long the store is not relied on after it was replaced. */
  readonly windowMs: number;
  /** How long no copy is used after a lost connection. */
  readonly settlingMs?: number;
  /** Called once each time that the store is lost or there again. */
  readonly onChange: (isThere: boolean) => void;
  /** A code of what is wrong with the store, repeated for as long as it is. */
  readonly onTrouble: (reason: string) => void;
}

/** In a cluster: few enough to ask all at once, enough to spread evenly. */
const SHARES = 1_024;
/** Longer than other instances take to connect again. */
const SETTLING_MS = 1_000;

/** Resolves after the first attempt to connect, successful or not. */
export async function openRedisEngine(options: RedisStoreOptions) {
  const { url, windowMs, settlingMs = SETTLING_MS, onChange, onTrouble } = options;
  const address = storeAddressOf(url);
  if (!address) throw new Error('STORE_URL is no address of a store');
  const connection: Connection = new Connection({
    address,
    onReady: () => void engine.askIds(),
    onLost: () => engine.lost(),
    onTrouble,
  });
  const shares = new Shares(address.kind === 'cluster' ? SHARES : 1);
  const engine = new RedisEngine({ connection, shares, windowMs, settlingMs, onChange, onTrouble });
  await connection.open();
  return {
    engine,
    isThere: () => engine.isThere,
    up: () => engine.up,
    watch: (watch: Watch) => {
      connection.watch = watch;
    },
    close: () => {
      engine.close();
      connection.close();
    },
  };
}
