import type { Engine as StoreEngine } from '../../src/store/shared/engine.ts';
import { Sealer } from '../../src/store/shared/sealer.ts';
import { SharedStore } from '../../src/store/shared.ts';
import { type ManualClock, manualClock } from '../support/clock.ts';
import { type ObjectEngine, objectEngine } from '../support/object-storage.ts';
import type { Engine } from './engine.ts';

const SECRET = 'for-development-only-and-known-to-all';
const UPSTREAM = 'http://upstream.test/';

interface SharedOptions {
  readonly engine: StoreEngine;
  readonly clock: ManualClock;
  readonly secrets?: readonly string[];
  readonly upstream?: string;
}

/** An instance's store over an engine. */
export const sharedStore = ({ engine, clock, secrets = [SECRET], upstream = UPSTREAM }: SharedOptions) =>
  new SharedStore({
    engine,
    sealer: new Sealer(secrets, upstream),
    maxBytes: 1_048_576,
    clock,
    waitMs: 5_000,
  });

export interface SharedWorld extends Engine {
  readonly engine: ObjectEngine;
  readonly clock: ManualClock;
  readonly store: SharedStore;
  readonly other: SharedStore;
}

/** Two instances over objects in this process. Time passes for all of them alike. */
export function sharedWorld(changes: Partial<SharedOptions> = {}): SharedWorld {
  const engine = objectEngine();
  const { clock = manualClock() } = changes;
  const open = () => sharedStore({ engine, clock, ...changes });
  const pass = (ms: number) => {
    engine.pass(ms);
    clock.advance(ms);
  };
  return { engine, clock, store: open(), other: open(), pass, slackMs: 0 };
}
