import type { Copies, Copy } from './copies.ts';
import { createPurchases } from './purchases.ts';
import { send } from './send.ts';
import type { Answered, Caller, Calling, Globals, Sender, Target, Trying } from './send.ts';
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
  readonly globals: Globals;
}

/** A call of this package's own, whose tries are not as usual. It gets the copy of whoever it is sent for. */
export interface OwnCalling extends Calling {
  readonly trying?: (copyFor: (caller: Caller) => Promise<Copy>) => Trying;
}
const WHOLE = (): Trying => [async () => [], async (response) => [response]];

/** Of the session that an answer tells of; undefined if nobody is signed in. */
const accountIn = ([value]: Answered) => (value as { readonly account?: string } | undefined)?.account;

/** A client of a gateway. One may be made for each request of a server: that costs next to nothing. */
export function createClient(options: ClientOptions = {}): Portico {
  const { parse = JSON.parse as (text: string) => unknown, routes = ours, globals = globalThis, copies } = options;
  const sender: Sender = { target: options, globals, session: { number: 0 } };
  let last = 0;
  const numbers = new Map<string | undefined, number>(); // of accounts: one that comes back goes on with its purchases

  const call = async (id: OperationId, input?: object, given: OwnCalling = {}): Promise<Answered> => {
    const wire = wireOf(routes[id], input, given);
    const { session } = sender;
    const { signal, waitOf, onRetry, trying } = given;
    const ofSession = id.endsWith('Session');
    const isChange = ofSession && !wire.isRead;
    // Before and after: in between it may be this one or that one.
    if (isChange) sender.session = { ...session, number: ++last };
    let copy: Copy | undefined;
    const copyFor = async (caller: Caller) => (copy = (await copies?.(wire, caller, globals)) ?? {});
    const read = async (response: Response): Promise<Answered> => {
      const { status } = response;
      const text = (status === 304 && copy?.kept?.text) || (await response.text());
      // Nothing is an answer with 204, and to a write that sends nothing.
      if (!text && (status === 204 || !(wire.isRead || wire.body))) return [];
      try {
        const value = parse(text);
        copy?.hear?.(text, response, value);
        return [value, text];
      } catch (error) {
        throw problemWithout('unexpected_answer', wire, error, response);
      }
    };
    const usual: Trying = [async (caller) => [(await copyFor(caller)).headers], read];
    const asking = () => call('getSession', undefined, { signal, waitOf, onRetry });
    const isSignedIn = () =>
      /^getSession$|Social$/.test(id) || // the answers of these are nobody's
      asking().then(
        (now) => accountIn(now) === session.account,
        () => false,
      );
    const answered = await send(sender, wire, [...(trying?.(copyFor) ?? usual), isSignedIn], given);
    const account = accountIn(answered);
    const isNews = !trying && sender.session.number === session.number && account !== session.account;
    if (isChange || (ofSession && isNews)) {
      const number = numbers.get(account) ?? (isChange || session.account ? ++last : session.number);
      if (account) numbers.set(account, number);
      sender.session = { number, account };
    }
    return answered;
  };

  const answer = async (id: OperationId, input?: object, given?: OwnCalling) => (await call(id, input, given))[0];
  const response = (id: OperationId, input?: object, given?: Calling) =>
    answer(id, input, { ...given, trying: WHOLE }) as Promise<Response>;
  const calls = Object.keys(routes).map((id) => [id, answer.bind(null, id as OperationId)]);
  const purchasePlan = createPurchases(sender, call.bind(null, 'purchasePlan'), parse) as Calls['purchasePlan'];
  return { ...(Object.fromEntries(calls) as Calls), purchasePlan, response, parse, routes, globals };
}
