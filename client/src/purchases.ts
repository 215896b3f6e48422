import type { Globals } from './globals.ts';
import { PorticoProblem } from './problem.ts';
import { isRecord, lowerCased } from './request.ts';
import { type Answered, type Calling, credentialFor, reasonOf, type Sender, unlessAborted } from './send.ts';

type Buying = (input: object, options?: Calling) => Promise<Answered>;

interface Purchase {
  readonly key: string;
  /** How long an equal one has the same key, in milliseconds since 1970; 0 while nothing went wrong. */
  readonly until: number;
  /** Until it is there. */
  readonly answer?: Promise<Answered>;
}

/** As long as the upstream may still carry out what got no answer. */
const UNKNOWN_MS = 60_000;

/**
 * `buy`, with an idempotency key for each purchase. An equal one, such as a double click, joins it while it is under way, and
 * has the same key for a minute if nobody knows how it ended. So it is charged once.
 */
export function createPurchases(sender: Sender, buy: Buying, parse: (text: string) => unknown) {
  const { globals } = sender;
  const purchases = new Map<string, Purchase>();

  const begin = async (equal: string, { key, until }: Purchase, answer: Promise<Answered>) => {
    purchases.set(equal, { key, until, answer });
    try {
      const done = await answer;
      purchases.delete(equal);
      return done;
    } catch (error) {
      const { outcome, status } = error instanceof PorticoProblem ? error : { outcome: 'unknown', status: 0 };
      // 409 says of the first one that it is under way or of unknown outcome, and that this one was not sent.
      if (!outcome && status !== 409) purchases.delete(equal);
      else purchases.set(equal, { key, until: (status === 409 && until) || globals.Date.now() + UNKNOWN_MS });
      throw error;
    }
  };

  const purchase: Buying = async (input, options = {}) => {
    if (options.idempotencyKey) return buy(input, options);
    const { signal, caller = {} } = options;
    caller.is ??= (await unlessAborted(credentialFor(sender, lowerCased(options.headers)), signal)).is;
    const equal = JSON.stringify([caller.is, { ...input, recaptcha: undefined }], sorted);
    const last = purchases.get(equal);
    if (last?.answer) {
      if (signal?.aborted) throw reasonOf(signal);
      const joined = last.answer.catch((error: unknown) => {
        if (signal?.aborted || error instanceof PorticoProblem) throw error;
        return purchase(input, { ...options, caller }); // the caller of that one has aborted it: this one goes on with its key
      });
      const { text } = await unlessAborted(joined, signal);
      return text === undefined ? {} : { value: parse(text), text }; // what its caller does to it is nobody else's
    }
    const one = last && last.until > globals.Date.now() ? last : { key: newKey(globals), until: 0 };
    return begin(equal, one, buy(input, { ...options, caller, idempotencyKey: one.key }));
  };

  return async (input: object, options?: Calling) => (await purchase(input, options)).value;
}

/** The order of members is nothing that the gateway compares either. */
function sorted(_: string, value: unknown): unknown {
  if (!isRecord(value)) return value;
  // oxlint-disable-next-line unicorn/no-array-sort, typescript/require-array-sort-compare -- as texts; not every React Native has `toSorted`
  return Object.fromEntries(Object.entries(value).sort());
}

/** Not every page has `randomUUID`, and React Native has no `crypto`. */
const newKey = ({ crypto, Date, Math }: Globals) => crypto?.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
