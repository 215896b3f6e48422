import type { NewWrite } from '../../src/store/port.ts';

const DAY_MS = 86_400_000;
export const ANSWER = { status: 200, text: '{}', at: 5 };

let nonces = 0;

/** A write that is announced at `now`. */
export const writeOf = (changes: Partial<NewWrite> = {}): NewWrite => {
  const { now = 0 } = changes;
  return {
    account: 'account',
    window: undefined,
    tags: ['group'],
    hasCopies: true,
    nonce: `nonce ${++nonces}`,
    now,
    endsAt: now + 10_000,
    until: now + 70_000,
    key: undefined,
    keyMs: DAY_MS,
    fingerprint: 'body',
    isPurchase: false,
    session: undefined,
    waitUntil: () => undefined,
    ...changes,
  };
};
