import type { NewWrite } from '../../src/store/store.ts';

export const DAY_MS = 86_400_000;
export const ANSWER = { status: 200, text: '{}' };

let nonces = 0;

export const writeOf = (changes: Partial<NewWrite> = {}): NewWrite => ({
  account: 'account',
  owner: changes.account ?? 'account',
  window: undefined,
  tags: ['group'],
  hasCopies: true,
  nonce: String(++nonces),
  now: 0,
  endsAt: 10_000,
  until: 70_000,
  key: undefined,
  keyMs: DAY_MS,
  fingerprint: 'body',
  isPurchase: false,
  session: undefined,
  waitUntil: () => undefined,
  ...changes,
});

/** Who asks what became of a key. */
export const questionOf = ({ now = 0, ...changes }: Partial<NewWrite>): NewWrite =>
  writeOf({ now, endsAt: now, until: now, keyMs: 0, tags: [], fingerprint: '', ...changes, isQuestion: true });
