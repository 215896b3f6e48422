import { PorticoProblem } from './problem.ts';
import { type Target, tokenOf } from './send.ts';
import type { CallOptions } from './types.ts';

type Buying = (input: object, options?: CallOptions) => Promise<unknown>;

interface Purchase {
  readonly key: string;
  /** Until it is answered. */
  readonly answer?: Promise<unknown>;
  /** How long an equal purchase is taken for this one, in milliseconds since 1970. */
  readonly until: number;
}

/** As long as the upstream may still carry out what got no answer. */
const UNKNOWN_MS = 60_000;

/**
 * `buy`, with an idempotency key for each purchase. An equal one, such as a double click, joins it while it is under way, and has the
 * same key for a minute if nobody knows how it ended. So it is charged once.
 */
export function createPurchases(target: Target, buy: Buying): Buying {
  const purchases = new Map<string, Purchase>();

  const begin = async (equal: string, key: string, answer: Promise<unknown>) => {
    purchases.set(equal, { key, answer, until: Infinity });
    try {
      const done = await answer;
      purchases.delete(equal);
      return done;
    } catch (error) {
      if (isKnown(error)) purchases.delete(equal);
      else purchases.set(equal, { key, until: Date.now() + UNKNOWN_MS });
      throw error;
    }
  };

  return async function purchase(input, options = {}): Promise<unknown> {
    if (options.idempotencyKey !== undefined) return buy(input, options);
    const equal = JSON.stringify([await tokenOf(target), { ...input, recaptcha: undefined }], sorted);
    const last = purchases.get(equal);
    if (last?.answer) return joined(last.answer, options.signal, () => purchase(input, options));
    const idempotencyKey = last && last.until > Date.now() ? last.key : newKey();
    return begin(equal, idempotencyKey, buy(input, { ...options, idempotencyKey }));
  };
}

/** The order of members is nothing that the gateway compares either. */
function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  // oxlint-disable-next-line unicorn/no-array-sort -- not every React Native has `toSorted`
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A refusal. Not known are: no answer, an abort, and 409 for a purchase that is under way or of unknown outcome. */
const isKnown = (error: unknown) => error instanceof PorticoProblem && !error.outcome && error.status !== 409;

/** Not every page has `randomUUID`, and React Native has no `crypto`. */
const newKey = () => globalThis.crypto?.randomUUID?.() ?? `${Date.now()}-${Math.random()}-${Math.random()}`;

/** The answer to an equal purchase; if its caller has aborted that one, this one goes on with its key. */
const joined = <T>(answer: Promise<T>, signal: AbortSignal | undefined, goOn: () => Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const leave = () => reject(signal?.reason ?? new Error('aborted')); // React Native knows no reason
    if (signal?.aborted) return leave();
    signal?.addEventListener('abort', leave);
    answer.then(resolve, (error) => {
      if (signal?.aborted || error instanceof PorticoProblem) return reject(error);
      resolve(goOn());
    });
  });
