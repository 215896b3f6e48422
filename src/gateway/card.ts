import { GatewayError } from '../core/errors.ts';
import { cut, itemsOf, memberOf, stringAt } from '../core/json.ts';
import type { MaybePromise } from '../core/runtime.ts';
import type { Reading } from '../cache/reading.ts';
import { operations } from '../upstream/operations/index.ts';
import type { OperationInput, Read } from '../upstream/request.ts';
import { badLeg, endingWith, goodLeg, isRefusal, type LegTools, sectionOf } from './legs.ts';
import { isBad, isGood, type Leg } from './overview.ts';

const { getPaymentMethod, getSubscription, listPaymentMethods } = operations;

const LIST: OperationInput = { query: '' };

/** Where the card is looked for first. */
export const CARD_READ: Read = { operation: listPaymentMethods, input: LIST };

const CARD_ID = /^[0-9]{1,19}$/;

/** A read that was begun before the subscription was there. */
interface Guess {
  /** The id that was asked for; none for the list, or where nothing was asked. */
  readonly id?: string;
  readonly reading?: Reading;
  readonly error?: GatewayError;
}

interface Card {
  readonly reading: Reading;
  readonly text: string;
}

/**
 * The payment method of the subscription, in one round trip with it: guessed at the same time, and asked for by its
 * id only when the guess did not hold it.
 */
export async function cardLeg(tools: LegTools, subscription: Promise<Leg>): Promise<Leg> {
  const begunAt = tools.clock.now();
  const msSoFar = () => tools.clock.now() - begunAt;
  const ends = endingWith(tools.caller.signal());
  const guess = guessCard({ ...tools, caller: { ...tools.caller, signal: () => ends.signal } });
  guess.catch(() => undefined); // looked at below, or no longer of interest
  try {
    const owner = await Promise.race([subscription, rejectsWithRefusal(guess)]);
    if (!isGood(owner)) return isBad(owner) ? { state: 'skipped', error: owner.error, ms: msSoFar() } : owner;
    const id = cardIdOf(owner.text);
    if (id === null) return { state: 'not_applicable', ms: msSoFar() };
    const { reading, text } = cardIn(await guess, id) ?? (await cardById(tools, id, await guess));
    return goodLeg(reading, text, msSoFar());
  } catch (error) {
    return badLeg(error, msSoFar());
  } finally {
    ends.abort(new Error('the guess is no longer needed'));
  }
}

/** Where the card probably is: nowhere when there was none, in the list when that is held, at the id seen last. */
async function guessCard({ gateway, caller }: LegTools): Promise<Guess> {
  const [heldList, heldSubscription] = await Promise.all([
    gateway.peek(listPaymentMethods, LIST, caller),
    gateway.peek(getSubscription, { query: '' }, caller),
  ]);
  const id = heldSubscription && idOf(heldSubscription.text, 'payment_method');
  if (id === 'null') return {};
  if (heldList || id === undefined || !CARD_ID.test(id))
    return settled(() => gateway.read(listPaymentMethods, LIST, caller));
  return { id, ...(await settled(() => gateway.read(getPaymentMethod, { id, query: '' }, caller))) };
}

async function settled(read: () => MaybePromise<Reading>): Promise<Guess> {
  try {
    return { reading: await read() };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { error };
  }
}

/** A refused account is known before the subscription is: its siblings need not be waited for. */
async function rejectsWithRefusal(guess: Promise<Guess>): Promise<never> {
  const { error } = await guess;
  if (error && isRefusal(error)) throw error;
  return new Promise(() => undefined);
}

function cardIn({ reading }: Guess, id: string): Card | undefined {
  const text = reading?.entry ? cardWith(id, reading.entry.text) : undefined;
  return reading && text !== undefined ? { reading, text } : undefined;
}

/** @throws GatewayError what became of the guess, or of the card */
async function cardById(tools: LegTools, id: string, guess: Guess): Promise<Card> {
  if (guess.error && !(await mayAskAfter(guess.error, { tools, isSame: guess.id === id, id }))) throw guess.error;
  const reading = await tools.gateway.read(getPaymentMethod, { id, query: '' }, tools.caller);
  return { reading, text: sectionOf(reading, tools.origin) };
}

interface AfterGuess {
  readonly tools: LegTools;
  readonly id: string;
  /** Whether the guess was this very card. */
  readonly isSame: boolean;
}

/**
 * Whether the card is asked for although the guess failed: yes, when a guess at another card was a miss; no, when the
 * account was refused or it was this card; else only where an older copy could answer, since the upstream had its turn.
 */
async function mayAskAfter(error: GatewayError, { tools, id, isSame }: AfterGuess): Promise<boolean> {
  if (isSame || isRefusal(error)) return false;
  if (error.status === 404) return true;
  return (await tools.gateway.peek(getPaymentMethod, { id, query: '' }, tools.caller)) !== undefined;
}

/** The card with this id, out of a page of cards or the card itself. */
function cardWith(id: string, text: string): string | undefined {
  const results = memberOf(text, 'results');
  const candidates = results ? [...itemsOf(text, results.start)].map((item) => cut(text, item)) : [text];
  return candidates.find((candidate) => idOf(candidate, 'id') === id);
}

/** @throws GatewayError `upstream_bad_response` for a subscription whose card id is none */
function cardIdOf(subscription: string): string | null {
  const id = idOf(subscription, 'payment_method');
  if (id === undefined || id === 'null') return null;
  if (!CARD_ID.test(id)) throw GatewayError.of('upstream_bad_response', { detail: 'The card has no usable id.' });
  return id;
}

/** An id as its digits: as text, since it may be beyond 2^53. */
function idOf(text: string, name: string): string | undefined {
  const span = memberOf(text, name);
  if (!span) return undefined;
  return text[span.start] === '"' ? stringAt(text, span) : cut(text, span);
}
