import type { Accounts } from '../../src/store/accounts.ts';
import { clockOfDeadlines, type ManualClock } from '../support/clock.ts';
import type { FakeShelf, Method } from '../support/fake-shelf.ts';
import type { TestGateway } from '../support/gateway.ts';
import { sharedStores } from '../support/stores.ts';
import type { Env } from '../support/world.ts';
import { gatewayBeside, openSessions, type SessionWorld } from './helpers.ts';

export interface SharedSessions extends SessionWorld {
  /** What the first instance knows, and its way to the store. */
  readonly accounts: Accounts;
  readonly shelf: FakeShelf;
  /** Another instance, which shares the store. */
  readonly other: TestGateway;
  /** One more, which knows nothing yet. */
  readonly oneMore: () => Promise<TestGateway>;
  /** From now on these calls get no answer of the store; all of them unless some are named. */
  readonly away: (...calls: Method[]) => void;
  readonly back: () => void;
}

const CALLS: readonly Method[] = ['read', 'swap', 'keep', 'count'];

/** Two instances over one store. */
export async function openShared(env: Env = {}): Promise<SharedSessions> {
  const clock = clockOfDeadlines();
  /** Calls that get no answer. */
  const deaf = new Set<Method>();
  // While it is away, nobody waits for it.
  const after: ManualClock['after'] = (ms, run) => clock.after(deaf.size > 0 ? 0 : ms, run);
  const { shelf, store, open } = sharedStores({ ...clock, after });
  const switched = (one: FakeShelf) => {
    one.before = (call) => (deaf.has(call) ? Promise.reject(new Error('away')) : undefined);
    return one;
  };
  switched(shelf);
  const world = await openSessions(env, { clock, store });
  const oneMore = () => gatewayBeside(world, env, { store: open(switched(shelf.beside())) });
  return {
    ...world,
    accounts: store,
    shelf,
    other: await oneMore(),
    oneMore,
    away: (...calls) => (calls.length === 0 ? CALLS : calls).forEach((call) => deaf.add(call)),
    back: () => deaf.clear(),
  };
}
