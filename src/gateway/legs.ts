import { GatewayError } from '../core/errors.ts';
import { cut, itemsOf, memberOf, stringAt } from '../core/json.ts';
import type { Clock, MaybePromise } from '../core/runtime.ts';
import type { Reading } from '../cache/reading.ts';
import type { Caller } from '../upstream/caller.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Operation } from '../upstream/operation.ts';
import { operations } from '../upstream/operations/index.ts';
import type { OperationInput } from '../upstream/request.ts';
import type { Gateway } from './gateway.ts';
import { type BadLeg, isBad, isGood, type Leg } from './overview.ts';

/** What the legs of one composed answer share. */
export interface LegTools {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly caller: Caller;
  /** Origin for the links of pages. */
  readonly origin: string;
}

const CARD_ID = /^[0-9]{1,19}$/;

const { getPaymentMethod, getSubscription, listPaymentMethods } = operations;

/** One read as a section. Refusals and failures come out as a bad leg; it rejects only when the client has left. */
export async function readLeg(tools: LegTools, operation: Operation, input: OperationInput): Promise<Leg> {
  const begunAt = tools.clock.now();
  try {
    const reading = await tools.gateway.read(operation, input, tools.caller);
    return goodLeg(reading, textOf(reading, tools.origin), tools.clock.now() - begunAt);
  } catch (error) {
    return badLeg(error, tools.clock.now() - begunAt);
  }
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

interface Guess {
  /** The id that was asked for; none for the list. */
  readonly id?: string;
  readonly reading?: Reading;
  readonly error?: GatewayError;
}

interface Card {
  readonly reading: Reading;
  readonly text: string;
}

const LIST: OperationInput = { query: '' };

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

/**
 * Asks for the card itself. After a guess that failed only for an older copy: the upstream had its chance.
 * @throws GatewayError what became of the guess, or of the card
 */
async function cardById({ gateway, caller, origin }: LegTools, id: string, guess: Guess): Promise<Card> {
  const input = { id, query: '' };
  const { error } = guess;
  const isWrongGuess = error?.status === 404 && guess.id !== id;
  const mayBeOlder = error && !isRefusal(error) && guess.id !== id;
  if (error && !isWrongGuess && !(mayBeOlder && (await gateway.peek(getPaymentMethod, input, caller)))) throw error;
  const reading = await gateway.read(getPaymentMethod, input, caller);
  return { reading, text: textOf(reading, origin) };
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
  if (!/^[0-9]{1,19}$/.test(id))
    throw GatewayError.of('upstream_bad_response', { detail: 'The card has no usable id.' });
  return id;
}

/** An id as its digits: as text, since it may be beyond 2^53. */
function idOf(text: string, name: string): string | undefined {
  const span = memberOf(text, name);
  if (!span) return undefined;
  return text[span.start] === '"' ? stringAt(text, span) : cut(text, span);
}

function goodLeg({ state, age, outcome }: Reading, text: string, ms: number): Leg {
  return { state, text, age, ttl: outcome.hit?.ttl, ms };
}

const textOf = ({ entry }: Reading, origin: string) => (entry === null ? 'null' : withOrigin(entry, origin));

function badLeg(error: unknown, ms: number): BadLeg {
  if (!(error instanceof GatewayError)) throw error;
  return { state: 'failed', error, ms };
}

/** Says something about the account, not about the section. */
export const isRefusal = ({ status }: GatewayError) => status === 401 || status === 403;

/** A controller that is aborted with its parent, or on its own. */
export function endingWith(parent: AbortSignal): AbortController {
  const controller = new AbortController();
  const end = () => controller.abort(parent.reason);
  if (parent.aborted) end();
  else parent.addEventListener('abort', end, { once: true, signal: controller.signal });
  return controller;
}
