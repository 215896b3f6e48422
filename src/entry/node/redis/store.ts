import type { Clock } from '../../../core/runtime.ts';
import { SharedStore } from '../../../store/shared.ts';
import { Vault } from '../../../store/shared/vault.ts';
import { Connection, type Watch } from './connection.ts';
import { RedisRemote } from './remote.ts';
import { RollCall } from './roll-call.ts';

interface RedisStoreOptions {
  readonly url: string;
  readonly secrets: readonly string[];
  readonly maxBytes: number;
  readonly clock: Clock;
  readonly onChange: (isThere: boolean) => void;
}

/** State that instances share through Redis or Valkey. Comes out once it has been looked for, found or not. */
export async function openRedisStore({ url, secrets, maxBytes, clock, onChange }: RedisStoreOptions) {
  const connection = new Connection({ url, onChange });
  const rollCall: RollCall = new RollCall({
    connection,
    writeAgain: (onProgress) => store.writeAgain(onProgress),
    onBeat: () => store.tellAll(),
  });
  const remote = new RedisRemote(connection, rollCall);
  const store = new SharedStore({ remote, vault: new Vault(secrets), maxBytes, clock, isVolatile: true });
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
      await rollCall.close();
      connection.close();
    },
  };
}
