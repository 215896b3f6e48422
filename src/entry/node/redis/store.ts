import { storeAddressOf } from '../../../core/store-address.ts';
import { Connection, type Watch } from './connection.ts';
import { RedisEngine } from './engine.ts';
import { Shares } from './shares.ts';

interface RedisStoreOptions {
  readonly url: string;
  /** For how long after the store became another one nothing of before may be relied upon. */
  readonly windowMs: number;
  /** For how long after a lost connection no copy is given. */
  readonly settlingMs?: number;
  /** Told once of each time that the store is lost or there again. */
  readonly onChange: (isThere: boolean) => void;
  /** What is wrong with the store, in a word; again and again for as long as it is. */
  readonly onTrouble: (reason: string) => void;
}

/** Of accounts, in a cluster: few enough to ask of all at once, enough to fall on all nodes alike. */
const SHARES = 1_024;
/** Longer than others take to connect again. */
const SETTLING_MS = 1_000;

/** State that instances share through Redis or Valkey. Comes out once it has been looked for, found or not. */
export async function openRedisEngine(options: RedisStoreOptions) {
  const { url, windowMs, settlingMs = SETTLING_MS, onChange, onTrouble } = options;
  const address = storeAddressOf(url);
  if (!address) throw new Error('STORE_URL is no address of a store');
  const connection: Connection = new Connection({
    address,
    onReady: () => void engine.greet(),
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
