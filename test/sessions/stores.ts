import type { Engine } from '../../src/store/shared/engine.ts';
import type { Store } from '../../src/store/store.ts';
import { sharedStore } from '../store/shared-world.ts';
import { clockOfDeadlines, type ManualClock } from '../support/clock.ts';
import { objectEngine } from '../support/object-storage.ts';
import type { TestGateway } from '../support/gateway.ts';
import type { Env } from '../support/world.ts';
import { gatewayBeside, openSessions, type SessionWorld } from './helpers.ts';

/** An engine that is away when the test says so. */
interface Switched {
  readonly engine: Engine;
  readonly clock: ManualClock;
  /** Calls that get no answer. */
  readonly deaf: Set<keyof Engine>;
  /** Stores of instances, over the one engine. `seenAs`: what one of them has in its place. */
  readonly open: (seenAs?: (engine: Engine) => Engine) => Store;
}

const CALLS = ['snapshot', 'save', 'beginWrite', 'endWrite', 'change'] as const;

function switched(): Switched {
  const clock = clockOfDeadlines();
  const objects = objectEngine();
  const deaf = new Set<keyof Engine>();
  const through = (name: (typeof CALLS)[number]) =>
    ((...args: never[]) =>
      deaf.has(name)
        ? Promise.reject(new Error('away'))
        : (objects[name] as (...given: never[]) => Promise<unknown>)(...args)) as never;
  const calls = Object.fromEntries(CALLS.map((name) => [name, through(name)]));
  const engine = { ...objects, ...calls } as Engine;
  // While it is away, nobody waits for it.
  const after: ManualClock['after'] = (ms, run) => {
    if (deaf.size === 0) return clock.after(ms, run);
    const soon = setImmediate(run);
    return () => clearImmediate(soon);
  };
  const advance = (ms: number) => {
    objects.pass(ms);
    clock.advance(ms);
  };
  return {
    engine,
    clock: { ...clock, advance },
    deaf,
    open: (seenAs = (same) => same) => sharedStore({ engine: seenAs(engine), clock: { ...clock, after } }),
  };
}

export interface SharedSessions extends SessionWorld {
  /** Another instance, which shares the store. */
  readonly other: TestGateway;
  /** One more, which knows nothing yet. */
  readonly oneMore: () => Promise<TestGateway>;
  /** From now on these get no answer of the store; all of them unless some are named. */
  readonly away: (...calls: (keyof Engine)[]) => void;
  readonly back: () => void;
}

/** Two instances over one store. `seenAs`: what the first has in place of the engine. */
export async function openShared(env: Env = {}, seenAs?: (engine: Engine) => Engine): Promise<SharedSessions> {
  const { clock, deaf, open } = switched();
  const world = await openSessions(env, { clock, store: open(seenAs) });
  const oneMore = () => gatewayBeside(world, env, { store: open() });
  return {
    ...world,
    other: await oneMore(),
    oneMore,
    away: (...calls) => (calls.length === 0 ? CALLS : calls).forEach((name) => deaf.add(name)),
    back: () => deaf.clear(),
  };
}
