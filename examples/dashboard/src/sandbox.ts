interface Switch {
  readonly label: string;
  /** What to look at. */
  readonly look: string;
  /** What the sandbox is told: docs/calling.md. */
  readonly faults: readonly object[];
}

export type SwitchName = 'cutOff' | 'limited' | 'failing' | 'slow';

/** What the page can make fail. Of two faults that fit a call the sandbox takes the older one. */
export const switches: Readonly<Record<SwitchName, Switch>> = {
  cutOff: {
    label: 'Cut off in mid-purchase',
    look: 'Buy a plan: the upstream sells it and hangs up. Nobody answers, and the page finds out what became of it.',
    faults: [{ operation: 'purchasePlan', reset: true, afterWork: true }],
  },
  limited: {
    label: 'Rate-limited upstream',
    look: 'Soon the last copies are dimmed, and a banner says why. Read everything again: the client waits as long as it is told, three tries in all.',
    faults: [{ operation: '*', status: 429, headers: { 'retry-after': '3' } }],
  },
  failing: {
    label: 'Failing notifications',
    look: 'Soon the last copy is dimmed, and a banner says why. Read everything again: one section says why it is not there, the others are.',
    faults: [{ operation: 'listNotifications', status: 503 }],
  },
  slow: {
    label: 'Slow upstream',
    look: 'Read everything again: each section is shown when it comes, the slowest keeps none of the others back.',
    faults: [
      { operation: 'getSubscription', delayMs: 600 },
      { operation: 'listNotifications', delayMs: 1_300 },
      { operation: 'getReferralConfig', delayMs: 2_000 },
      { operation: 'listPaymentMethods', delayMs: 2_700 },
      { operation: 'getPaymentMethod', delayMs: 600 },
      { operation: 'listTransactions', delayMs: 1_000 },
      { operation: 'listReferralCredits', delayMs: 1_000 },
      { operation: 'purchasePlan', delayMs: 1_500 },
    ],
  },
};

const names = Object.keys(switches) as SwitchName[];

let last = Promise.resolve();

/** Ends all faults, and begins those that are switched on. One change after the other. */
export function setFaults(on: ReadonlySet<SwitchName>): Promise<void> {
  last = last.then(() => send(on)).catch(() => undefined);
  return last;
}

async function send(on: ReadonlySet<SwitchName>): Promise<void> {
  await fetch('/_sandbox/faults', { method: 'DELETE' });
  for (const fault of names.filter((name) => on.has(name)).flatMap((name) => switches[name].faults)) {
    await fetch('/_sandbox/faults', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...fault, times: 1_000 }),
    });
  }
}
