import { type Clock, stopwatch, within } from '../../core/runtime.ts';
import type { MemoryAccounts } from '../memory/accounts.ts';
import type { AccountId, OwnedAccount, Window, WindowUse } from '../store.ts';
import { type Engine, type SnapshotReply, useOf } from './engine.ts';

/** Requests of an account that are counted in advance, from its second one in a minute on. */
const ADVANCE = 16;
const ASK_MS = 190;
/** Clocks may run 8 % slow. */
const SLOWEST = 0.92;

interface CountingParts {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly limits: MemoryAccounts;
}

interface Waiting {
  readonly owned: OwnedAccount;
  readonly window: Window;
  readonly resolve: (use: WindowUse) => void;
}

/** Counts requests that ask the store for nothing else. Those of an account that come during a question are counted together. */
export class Counting {
  readonly #parts: CountingParts;
  /** Of the accounts that have a question under way. */
  readonly #waiting = new Map<AccountId, Waiting[]>();
  /** The last question had no reply in time: what it was told in advance may be lost. */
  #isLate = false;

  constructor(parts: CountingParts) {
    this.#parts = parts;
  }

  /** Without a reply it is counted in this instance alone. Never rejects. */
  count(owned: OwnedAccount, window: Window): Promise<WindowUse> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(owned.account);
      if (waiting) waiting.push({ owned, window, resolve });
      else void this.#countAll({ owned, window, resolve });
    });
  }

  async #countAll(first: Waiting): Promise<void> {
    const { owned, window } = first;
    for (let asked = [first]; asked.length > 0;) {
      const waiting: Waiting[] = [];
      this.#waiting.set(owned.account, waiting);
      const uses = await this.#ask(owned, window, asked.length);
      for (const [i, use] of uses.entries()) asked[i]?.resolve(use);
      asked = waiting.filter((one) => {
        const use = this.#parts.limits.takeAdvance(one.owned, window);
        if (use) one.resolve(use);
        return !use;
      });
    }
    this.#waiting.delete(owned.account);
  }

  async #ask(owned: OwnedAccount, window: Window, count: number): Promise<WindowUse[]> {
    const { engine, clock, limits } = this.#parts;
    const advanceAsked = this.#isLate ? 0 : ADVANCE;
    const each = Array.from({ length: count }, (_, i) => i);
    const passed = stopwatch(clock);
    const replying = engine.snapshot(owned.account, { window, count, advance: advanceAsked, keys: [] });
    // The store has counted them in advance, however late it says so.
    const learn = ({ use }: SnapshotReply) => {
      if (use?.advance)
        limits.learnAdvance(owned, window, { left: use.advance, isOver: () => passed() >= use.leftMs * SLOWEST });
    };
    replying.then(learn, () => undefined);
    const reply = await within(clock, ASK_MS, replying).catch(() => undefined);
    this.#isLate = !reply;
    if (!reply?.use) return each.map(() => limits.take(owned, window, clock.now()));
    const use = useOf(reply.use, clock.now());
    limits.learn(owned, window.name, use);
    return each.map((i) => ({ ...use, used: use.used - count + 1 + i }));
  }
}
