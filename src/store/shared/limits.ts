import type { Clock } from '../../core/runtime.ts';
import type { MemoryLimits } from '../memory/limits.ts';
import { type AccountId, accountNameOf, type Limits, type Window, type WindowUse } from '../store.ts';
import type { Remote } from './remote.ts';

interface LimitsOptions {
  readonly remote: Remote;
  /** Counts where the engine does not answer, and knows what the engine said of holds. */
  readonly local: MemoryLimits;
  readonly clock: Clock;
}

/** Of one and the same 429 several layers hear. */
const NEWS_MS = 500;

/** Limits that instances share, under the first name of an account. */
export class SharedLimits implements Limits {
  readonly #of: LimitsOptions;

  constructor(options: LimitsOptions) {
    this.#of = options;
  }

  async take(window: Window): Promise<WindowUse> {
    const { remote, local } = this.#of;
    try {
      const { use } = await remote.visit(accountNameOf(window.account), { places: [], window });
      if (use) return { used: use.used, endsAt: window.now + use.leftMs };
    } catch {
      // counted here then
    }
    return local.take(window);
  }

  async hold(account: AccountId, until: number): Promise<void> {
    const { remote, local, clock } = this.#of;
    const isNews = until > local.heldUntil(account) + NEWS_MS;
    local.hold(account, until);
    const ms = Math.ceil(until - clock.now());
    // That others do not hear of it costs the upstream a call or two, and them a 429 each.
    if (ms > 0 && isNews && (remote.state?.() ?? 'there') === 'there')
      await remote.hold(accountNameOf(account), ms).catch(() => undefined);
  }

  heldUntil(account: AccountId): number {
    return this.#of.local.heldUntil(account);
  }
}
