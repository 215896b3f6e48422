import type { Copies, Copy } from './copies.ts';
import type { Globals } from './globals.ts';
import { createPurchases } from './purchases.ts';
import { wireOf } from './request.ts';
import { type OperationId, type Routes, routes as ours } from './routes.ts';
import { type Answered, type Calling, problemWithout, send, type Sender, type Target } from './send.ts';
import type { Call, Takes } from './types.ts';

export interface ClientOptions extends Target {
  /** Reads the text of an answer, in place of `JSON.parse`: for ids beyond 2^53. */
  readonly parse?: ((text: string) => unknown) | undefined;
  /** Of a gateway with rows or overviews of its own, as `npx portico client` prints them. */
  readonly routes?: Routes | undefined;
  /** Answers that are kept with their ETag, by `keepCopies()`. Browsers need none: their HTTP cache does it. */
  readonly copies?: Copies | undefined;
}

/** The answer as it is, and no copy. */
const WHOLE: Calling['trying'] = { conditions: async () => undefined, read: (value) => ({ value }) };

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
  readonly routes: Routes;
  readonly globals: Globals;
}

/** Of the session that it tells of; undefined if nobody is signed in. */
const accountIn = ({ value }: Answered) => (value as { readonly account?: string } | undefined)?.account;

/** A client of a gateway. One may be made for each request of a server: that costs next to nothing. */
export function createClient(options: ClientOptions = {}): Portico {
  const { parse = JSON.parse as (text: string) => unknown, routes = ours, globals = globalThis } = options;
  const sender: Sender = { target: options, globals, session: { number: 0 } };
  let last = 0;
  const numbers = new Map<string | undefined, number>(); // of accounts: one that comes back goes on with its purchases

  const tell = (account: string | undefined, number: number) => {
    const known = numbers.get(account) ?? number;
    if (account !== undefined) numbers.set(account, known);
    sender.session = { number: known, account };
  };

  const call = async (id: OperationId, input?: object, given: Calling = {}): Promise<Answered> => {
    const wire = wireOf(routes[id], input, given);
    const ofSession = id.endsWith('Session');
    const { session } = sender;
    const { signal, waitOf, onRetry } = given;
    // Before and after: in between it may be this one or that one.
    if (ofSession && !wire.isRead) sender.session = { number: ++last, account: session.account };
    let copy: Copy = {}; // of the account that the try is sent for
    const answered = await send(sender, wire, {
      options: given,
      isSignedIn: async () =>
        /^getSession$|Social$/.test(id) || // the answers of these are nobody's
        accountIn(await call('getSession', undefined, { signal, waitOf, onRetry })) === session.account,
      conditions: async (caller) => (copy = (await options.copies?.(wire, caller, globals)) ?? {}).headers,
      async read(response): Promise<Answered> {
        const text = (response.status === 304 && copy.text) || (await response.text());
        // Nothing is an answer with 204, and to a write that sends nothing.
        if (!text && (response.status === 204 || !(wire.isRead || wire.body))) return {};
        try {
          const value = parse(text);
          copy.keep?.(text, response, value);
          return { value, text };
        } catch (error) {
          throw problemWithout('unexpected_answer', wire, error, response);
        }
      },
      ...given.trying,
    });
    if (ofSession) {
      const account = accountIn(answered);
      const isNews = sender.session.number === session.number && account !== session.account && !given.trying;
      if (!wire.isRead) tell(account, ++last);
      else if (isNews) tell(account, session.account === undefined ? session.number : ++last);
    }
    return answered;
  };

  const answer = async (id: OperationId, input?: object, given?: Calling) => (await call(id, input, given)).value;
  const response = (id: OperationId, input?: object, given?: Calling) =>
    answer(id, input, { ...given, trying: WHOLE }) as Promise<Response>;

  const calls = Object.keys(routes).map((id) => [id, answer.bind(null, id as OperationId)]);
  const purchasePlan = createPurchases(sender, call.bind(null, 'purchasePlan'), parse) as Calls['purchasePlan'];
  return { ...(Object.fromEntries(calls) as Calls), purchasePlan, response, parse, routes, globals };
}
