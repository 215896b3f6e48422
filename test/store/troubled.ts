import { systemClock } from '../../src/entry/node/deps.ts';
import { SharedStore } from '../../src/store/shared.ts';
import type { Remote } from '../../src/store/shared/remote.ts';
import { Vault } from '../../src/store/shared/vault.ts';
import { type Chaos, chaosOn } from './chaos.ts';
import { MemoryRemote } from './memory-remote.ts';

const SECRET = 'the secret of an engine in trouble';

export interface Troubled {
  /** The instance that trouble comes to. */
  readonly store: SharedStore;
  /** Another, which always reaches the engine. */
  readonly other: SharedStore;
  readonly chaos: Chaos;
  pass(ms: number): void;
}

const open = (remote: Remote) =>
  new SharedStore({ remote, vault: new Vault([SECRET]), maxBytes: 1_048_576, clock: systemClock, isVolatile: true });

/** Two instances on one engine; between it and the first there may be trouble. */
export function troubled(): Troubled {
  const engine = new MemoryRemote();
  const chaos = chaosOn(engine);
  return { store: open(chaos.remote), other: open(engine), chaos, pass: (ms) => engine.pass(ms) };
}
