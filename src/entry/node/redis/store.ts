import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../../core/runtime.ts';
import { SharedStore } from '../../../store/shared.ts';
import { Vault } from '../../../store/shared/vault.ts';
import { Connection, type Watch } from './connection.ts';
import { RedisRemote } from './remote.ts';
import { RollCall } from './roll-call.ts';

/** How long an instance that ends tells what the store has not heard yet. */
const LAST_WORDS_MS = 1_000;

interface RedisStoreOptions {
  readonly url: string;
  readonly secrets: readonly string[];
  readonly maxBytes: number;
  readonly clock: Clock;
  readonly onChange: (isThere: boolean) => void;
  /** What is wrong with the store, in a word; again and again for as long as it is. */
  readonly onTrouble: (reason: string) => void;
  /** How many accounts the store never heard all of, when this instance ends. */
  readonly onLost: (accounts: number) => void;
}

/** State that instances share through Redis or Valkey. Comes out once it has been looked for, found or not. */
export async function openRedisStore(options: RedisStoreOptions) {
  const { url, secrets, maxBytes, clock, onChange, onTrouble, onLost } = options;
  const connection = new Connection({ url, onChange, onTrouble });
  const vault = new Vault(secrets);
  const rollCall: RollCall = new RollCall({
    connection,
    marks: await Promise.all(vault.namers.map(async (nameOf) => nameOf('instance'))),
    onTrouble,
    writeAgain: (onProgress) => store.writeAgain(onProgress),
    onBeat: () => store.tellAll(),
  });
  const remote = new RedisRemote(connection, rollCall);
  const store = new SharedStore({ remote, vault, maxBytes, clock, isVolatile: true });
  await connection.open();
  await rollCall.begin();
  return {
    store,
    shared: {
      isThere: () => connection.isThere,
      untoldAccounts: () => store.untoldAccounts,
      watch: (watch: Watch) => {
        connection.watch = watch;
      },
    },
    close: async () => {
      if (connection.isThere) await Promise.race([store.tellAll().catch(() => undefined), sleep(LAST_WORDS_MS)]);
      if (store.untoldAccounts > 0) onLost(store.untoldAccounts);
      await rollCall.close();
      connection.close();
    },
  };
}
