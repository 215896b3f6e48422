import { GatewayError } from '../core/errors.ts';
import { cut, itemsOf, memberOf, stringAt } from '../core/json.ts';
import type { Clock } from '../core/runtime.ts';
import type { Reading } from '../cache/reading.ts';
import type { Caller } from '../upstream/caller.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Operation } from '../upstream/operation.ts';
import { operations } from '../upstream/operations/index.ts';
import type { OperationInput } from '../upstream/request.ts';
import type { Gateway } from './gateway.ts';
import { type BadLeg, isGood, type Leg } from './overview.ts';

/** What the legs of one composed answer share. */
export interface LegTools {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly caller: Caller;
  /** Origin for the links of pages. */
  readonly origin: string;
}

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
    if (!isGood(owner)) return 'error' in owner ? { state: 'skipped', error: owner.error, ms: msSoFar() } : owner;
    const id = cardIdOf(owner.text);
    if (id === null) return { state: 'not_applicable', ms: msSoFar() };
    const { reading, text } = await cardIn(guess, id, tools);
    return goodLeg(reading, text, msSoFar());
  } catch (error) {
    return badLeg(error, msSoFar());
  } finally {
    ends.abort(new Error('the guess is no longer needed'));
  }
}

/** Where the card probably is: the list when that is held, the id seen last, else the list. */
async function guessCard({ gateway, caller }: LegTools): Promise<Reading> {
  const list = { query: '' };
  const [heldList, heldSubscription] = await Promise.all([
    gateway.peek(listPaymentMethods, list, caller),
    gateway.peek(getSubscription, { query: '' }, caller),
  ]);
  const id = heldSubscription ? cardIdOf(heldSubscription.text) : null;
  if (heldList || id === null) return gateway.read(listPaymentMethods, list, caller);
  return gateway.read(getPaymentMethod, { id, query: '' }, caller);
}

async function cardIn(
  guess: Promise<Reading>,
  id: string,
  tools: LegTools,
): Promise<{ reading: Reading; text: string }> {
  const guessed = await guess.catch(rethrowUnlessMissing);
  const text = guessed?.entry ? cardWith(id, guessed.entry.text) : undefined;
  if (guessed && text !== undefined) return { reading: guessed, text };
  const reading = await tools.gateway.read(getPaymentMethod, { id, query: '' }, tools.caller);
  return { reading, text: textOf(reading, tools.origin) };
}

/** A card that is not there was a wrong guess; anything else is what became of the section. */
function rethrowUnlessMissing(error: unknown): undefined {
  if (error instanceof GatewayError && error.status === 404) return undefined;
  throw error;
}

/** A refused account is known before the subscription is: its siblings need not be waited for. */
function rejectsWithRefusal(guess: Promise<unknown>): Promise<never> {
  return new Promise((_, reject) => {
    guess.catch((error: unknown) => {
      if (error instanceof GatewayError && isRefusal(error)) reject(error);
    });
  });
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
