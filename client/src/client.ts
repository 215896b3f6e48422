import type { Copies, Copy } from './copies.ts';
import { createPurchases } from './purchases.ts';
import { type Caller, type Calling, send, type Sender, type Target, type Trying } from './send.ts';
import { routes as ours } from './table.ts';
import type { Call, OperationId, Routes, Takes } from './types.ts';
import { problemWithout, wireOf } from './wire.ts';

export interface ClientOptions extends Target {
  /** Reads the text of an answer, in place of `JSON.parse`: for ids beyond 2^53. */
  readonly parse?: ((text: string) => unknown) | undefined;
  /** Of a gateway with rows or overviews of its own, as `npx portico client` prints them. */
  readonly routes?: Routes | undefined;
  /** Answers that are kept with their ETag, by `keepCopies()`. Browsers need none: their HTTP cache does it. */
  readonly copies?: Copies | undefined;
}

type Calls = { readonly [Id in OperationId]: Call<Id> };
/** All operations as methods, by their `operationId`. What was given to `createClient` is there too. */
export interface Portico extends Calls {
  /**
   * The answer itself, for its headers or its stream. A status from 400 is thrown as a problem here too. Not for
   * purchases: it would send an equal one once more.
   */
  readonly response: <Id extends Exclude<OperationId, 'purchasePlan'>>(
    id: Id,
    ...given: Takes<Id>
  ) => Promise<Response>;
  readonly parse: (text: string) => unknown;
  readonly routes: Routes;
}

const WHOLE: Calling['trying'] = (copyFor) => [(who) => copyFor(who).then(() => ({})), async (response) => response];

/** A client of a gateway. One may be made for each request of a server: that costs next to nothing. */
export function createClient(options: ClientOptions = {}): Portico {
  const { parse = JSON.parse as (text: string) => unknown, routes = ours, copies } = options;
  const sender: Sender = { target: options, session: 0 };

  const call = async (id: OperationId, input?: object, given: Calling = {}): Promise<unknown> => {
    const wire = wireOf(routes[id], input, given);
    let copy: Copy = {};
    const copyFor = async (caller: Caller) => (copy = (await copies?.(wire, caller)) ?? {});
    const read = async (response: Response): Promise<unknown> => {
      const text = (response.status === 304 && copy.kept?.text) || (await response.text());
      // Nothing is an answer with 204, and to a write that sends nothing.
      if (!text && (response.status === 204 || !(wire.isRead || wire.body))) return undefined;
      try {
        const value = parse(text);
        copy.hear?.(text, response, value);
        return value;
      } catch (error) {
        throw problemWithout('unexpected_answer', wire, error, response);
      }
    };
    const usual: Trying = [copyFor, read];
    // Before and after: in between the session may be the old one or the new one.
    const change = id.endsWith('Session') && !wire.isRead ? 1 : 0;
    sender.session += change;
    return send(sender, wire, given.trying?.(copyFor) ?? usual, given).finally(() => (sender.session += change));
  };

  const response = (id: OperationId, input?: object, given?: Calling) =>
    call(id, input, { ...given, trying: WHOLE }) as Promise<Response>;
  const calls = Object.keys(routes).map((id) => [id, call.bind(null, id as OperationId)]);
  const purchasePlan = createPurchases(sender, call.bind(null, 'purchasePlan')) as Calls['purchasePlan'];
  return { ...(Object.fromEntries(calls) as Calls), purchasePlan, response, parse, routes };
}
