/** With its credential; any other one that the sandbox did not make itself is refused. */
const named = <N extends string>(name: N, description: string) => ({ name, key: `sandbox-${name}-key`, description });

/** The named accounts, in the order of their identifiers: the first has 1000 and up, the second 2000 and up. */
export const sandboxAccounts = [
  named('paid', 'a paid plan, three cards (one declines), 30 transactions, sub-users, proxy activity'),
  named('nocard', 'the free plan and no card: payment_method is null'),
  named('affiliate', 'an affiliate with 240 referral credits, 30 earn-outs and three channels'),
  named('unverified', 'ID verification failed twice of three times, and fails again'),
  named('suspended', 'every call is refused with 403 account_suspended'),
  named('twofactor', 'every call is refused with 403 2fa_needed'),
  named('paused', 'a paused subscription that resumes in seven days'),
  named('lapsed', 'a card is saved but the plan is no longer paid: the card can be deleted'),
] as const;

export type AccountName = (typeof sandboxAccounts)[number]['name'];
