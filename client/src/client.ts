import { createCopies } from './copies.ts';
import { createPurchases } from './purchases.ts';
import { type Wire, wireOf } from './request.ts';
import { type OperationId, routes } from './routes.ts';
import { problemWithout, send, type Target } from './send.ts';
import type { Call, CallOptions, Takes } from './types.ts';

export interface ClientOptions extends Target {
  /** Reads the text of an answer, in place of `JSON.parse`: for ids beyond 2^53. */
  readonly parse?: ((text: string) => unknown) | undefined;
  /** How many answers are kept with their ETag. Unless given 100, and none in browsers, whose HTTP cache does it. */
  readonly copies?: number | undefined;
}

/** Nothing is an answer with 204, and to a write that sends nothing. */
const mayBeEmpty = ({ isRead, body }: Wire, { status }: Response) => status === 204 || (!isRead && body === undefined);

type Calls = { readonly [Id in OperationId]: Call<Id> };

/** All operations as methods, by their `operationId`. */
export interface Portico extends Calls {
  /**
   * The answer itself, for its headers or its stream. A status from 400 is thrown as a problem here too. Not for
   * purchases: it would send an equal one once more.
   */
  readonly response: <Id extends Exclude<OperationId, 'purchasePlan'>>(
    id: Id,
    ...given: Takes<Id>
  ) => Promise<Response>;
  /** As given to `createClient`. */
  readonly parse: (text: string) => unknown;
}

/** A client of a gateway. One may be made for each request of a server: that costs next to nothing. */
export function createClient(options: ClientOptions = {}): Portico {
  const { parse = JSON.parse as (text: string) => unknown } = options;
  const copies = createCopies(options.copies);
  let sessions = 0; // begun and ended here: each may be another account's

  const answer = async (id: OperationId, input?: object, callOptions: CallOptions = {}): Promise<unknown> => {
    const wire = wireOf(id, input, callOptions);
    if (id.endsWith('Session') && !wire.isRead) sessions += 1;
    let copy: ReturnType<typeof copies>; // of the account that the try is sent for
    return send(options, wire, {
      signal: callOptions.signal,
      conditions: (headers) => (copy = copies(wire, headers)).headers,
      async read(response) {
        if (response.status === 304 && copy.headers) return copy.value;
        const text = await response.text();
        if (text === '' && mayBeEmpty(wire, response)) return undefined;
        try {
          return copy.keep(parse(text), response.headers.get('ETag'));
        } catch (error) {
          throw problemWithout('unexpected_answer', wire, error, response);
        }
      },
    });
  };

  const response = (id: OperationId, input?: object, callOptions: CallOptions = {}) =>
    send(options, wireOf(id, input, callOptions), { signal: callOptions.signal, read: (one) => one });

  const calls = Object.keys(routes).map((id) => [id, answer.bind(null, id as OperationId)]);
  const purchasePlan = createPurchases(
    options,
    answer.bind(null, 'purchasePlan'),
    () => sessions,
  ) as Calls['purchasePlan'];
  return { ...(Object.fromEntries(calls) as Calls), purchasePlan, response, parse };
}
