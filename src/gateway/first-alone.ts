import type { Reading } from '../cache/reader.ts';
import { GatewayError } from '../core/errors.ts';
import { isRefusal } from './compose.ts';

/** What became of one of several reads. */
export type ReadOutcome = Reading | GatewayError;

/**
 * Until the upstream has accepted the credential, items are read one after another, and a 401 or 403 is then the answer to
 * all that are left; after that the rest is read at once.
 */
export async function firstAlone<Item>(
  items: readonly Item[],
  outcomeOf: (item: Item, at: number) => Promise<ReadOutcome>,
  wasAccepted = false,
): Promise<ReadOutcome[]> {
  const outcomes: Promise<ReadOutcome>[] = [];
  let isAccepted = wasAccepted;
  let refusal: GatewayError | undefined;
  for (const [at, item] of items.entries()) {
    const outcome = refusal ? Promise.resolve(refusal) : outcomeOf(item, at);
    outcomes.push(outcome);
    if (isAccepted) continue;
    const first = await outcome;
    if (!(first instanceof GatewayError)) isAccepted = true;
    else if (isRefusal(first)) refusal = first;
  }
  return Promise.all(outcomes);
}
