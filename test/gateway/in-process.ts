import { createApp } from '../../src/app.ts';
import type { Logger } from '../../src/core/logger.ts';
import type { Clock } from '../../src/core/runtime.ts';
import { nodeDeps, openStore } from '../../src/entry/node/deps.ts';
import type { StoreAddress } from '../../src/entry/node/redis/address.ts';
import type { Transport } from '../../src/upstream/transport.ts';
import { configOf } from '../support/gateway.ts';
import { accountTables } from '../support/account-api.ts';

interface InProcessOptions {
  /** Plays the upstream. */
  readonly transport: Transport;
  readonly clock?: Clock;
  /** Of a store that it shares. */
  readonly store?: StoreAddress;
  readonly env?: Readonly<Record<string, string>>;
}

export interface InProcess {
  /** `address` is the client's. */
  readonly ask: (path: string, token: string, init?: RequestInit, address?: string) => Promise<Response>;
  /** Resolves once it has tried to connect to its store. */
  readonly opened: Promise<void>;
  readonly close: () => Promise<void>;
}

const UPSTREAM = 'http://upstream.test';

/** Keeps nothing: a run of a hundred thousand requests is not one to read the log of. */
const nothing = () => undefined;
const quiet = { info: nothing, warn: nothing, error: nothing, request: nothing } satisfies Logger;

/** Clients are told apart by a header of the test. */
const addressOf = (_: object, header: (name: string) => string | undefined) => header('x-from') ?? '';

/** The gateway without a socket on either side, for what has to be done many thousand times. */
export function inProcess({ transport, clock, store, env = {} }: InProcessOptions): InProcess {
  const config = configOf({ UPSTREAM_BASE_URL: UPSTREAM, RATE_LIMIT_PER_MINUTE: '0', ...env });
  const readiness = { isReady: () => true };
  const given = {
    ...accountTables,
    config,
    upstream: new URL(UPSTREAM),
    logger: quiet,
    readiness,
    ...(clock && { clock }),
  };
  const made = openStore(given, store);
  const { deps, idle, close } = nodeDeps(given, made);
  const app = createApp({ ...deps, transport, addressOf });
  return {
    opened: made.opened,
    async ask(path, token, init = {}, address = '192.0.2.1') {
      const own = { Authorization: `Token ${token}`, 'x-from': address };
      const headers = { ...own, ...(init.headers as Record<string, string>) };
      return app.request(`http://portico.test${path}`, { ...init, headers });
    },
    async close() {
      await idle();
      await close();
    },
  };
}
