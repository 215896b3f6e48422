import { useEffect, useRef, useState } from 'react';
import { type Answer, type Before, type Input, type Outcome, outcomeOf, PorticoProblem } from 'portico-client';
import { portico } from './portico.ts';

type Wanted = Input<'purchasePlan'>;

export type Purchase =
  | { readonly is: 'none' }
  | { readonly is: 'under way' }
  | { readonly is: 'bought'; readonly answer: Answer<'purchasePlan'> }
  | { readonly is: 'refused'; readonly error: unknown }
  /** It was sent, and nobody knows what became of it. */
  | { readonly is: 'unknown' }
  /** What the account shows, if it could be read. */
  | { readonly is: 'found'; readonly outcome: Outcome | undefined };

const LOOK_EVERY_MS = 2_000;
const LOOK_FOR_MS = 60_000;

const sections = ['subscription', 'pending_payments'] as const;

/**
 * One purchase at a time: whoever clicks twice buys once. The client alone would join a second click while the first is under
 * way; here it may also come after the answer.
 */
export function usePurchase(onBought: () => void) {
  const [purchase, setPurchase] = useState<Purchase>({ is: 'none' });
  const [clicks, setClicks] = useState(0);
  const attempt = useRef<Promise<void>>(undefined);
  const left = useRef(new AbortController());
  useEffect(() => {
    left.current = new AbortController();
    return () => left.current.abort();
  }, []);

  async function run(wanted: Wanted): Promise<void> {
    setPurchase({ is: 'under way' });
    try {
      const { data: before } = await portico.getBillingOverview(
        { sections },
        { fresh: true, signal: left.current.signal },
      );
      await send(wanted, before);
    } catch (error) {
      attempt.current = undefined; // nothing was bought, so it may be tried again
      setClicks(0);
      setPurchase({ is: 'refused', error });
    }
  }

  /** Whoever signs out leaves the purchase: it is nothing that the next account should see. */
  async function send(wanted: Wanted, before: Before): Promise<void> {
    const { signal } = left.current;
    const idempotencyKey = crypto.randomUUID(); // by which the gateway says afterwards what became of it
    try {
      const answer = await portico.purchasePlan(wanted, { signal, idempotencyKey });
      setPurchase({ is: 'bought', answer });
    } catch (error) {
      if (!isUnknown(error)) throw error;
      setPurchase({ is: 'unknown' });
      setPurchase({ is: 'found', outcome: await findOut(before, { signal, idempotencyKey }) });
    }
    if (!signal.aborted) onBought();
  }

  function buy(wanted: Wanted) {
    setClicks((before) => before + 1);
    attempt.current ??= run(wanted);
  }
  function again() {
    attempt.current = undefined;
    setClicks(0);
    setPurchase({ is: 'none' });
  }
  return { purchase, clicks, buy, again };
}

/** A 409 is not: it says that an equal purchase of a minute ago is, and that this one was not sent. */
const isUnknown = (error: unknown) =>
  error instanceof PorticoProblem && error.outcome === 'unknown' && error.status !== 409;

/** Gives it a moment, then looks, and again every few seconds: within a minute it may still happen. */
async function findOut(
  before: Before,
  options: { readonly signal: AbortSignal; readonly idempotencyKey: string },
): Promise<Outcome | undefined> {
  const until = Date.now() + LOOK_FOR_MS;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    const outcome = await outcomeOf(portico, before, options).catch(() => undefined);
    const isSeen = outcome !== undefined && !['not_seen', 'not_bought', 'under_way'].includes(outcome.state);
    if (isSeen || options.signal.aborted || Date.now() > until) return outcome;
  }
}
