import { SingleFlight } from '../cache/single-flight.ts';
import { type ErrorCode, GatewayError } from '../core/errors.ts';
import { hookFailed, type Logger, logFault } from '../core/logger.ts';
import { childOf, type Clock, onAbort } from '../core/runtime.ts';
import { recent } from '../store/bounded.ts';
import type { AccountId } from '../store/store.ts';
import type { Prepared, RequestContext, UpstreamCall } from '../upstream/call.ts';
import { checkHeaders } from '../upstream/hook-headers.ts';
import type { Exchange, Exchanged } from '../upstream/hooks.ts';
import { concealableIn } from '../upstream/refusal.ts';

const MAX_ACCOUNTS = 10_000;
const MAX_SECONDS = 24 * 60 * 60;

/** What a key was exchanged for. The key is not in it: it would be kept too. */
interface Made extends Omit<Prepared, 'refused'> {
  /** In milliseconds of the process's clock; 0 if it is for one call alone. */
  readonly until: number;
}

interface Tools {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Asks the hook `credential` what keys are exchanged for, and keeps that for as long as it says. */
export class Exchanges {
  readonly #exchange: Exchange;
  readonly #tools: Tools;
  readonly #kept = recent<AccountId, Made>(MAX_ACCOUNTS);
  readonly #flights = new SingleFlight<Made, undefined>();

  constructor(exchange: Exchange, tools: Tools) {
    this.#exchange = exchange;
    this.#tools = tools;
  }

  /** @throws GatewayError with the fault `not_sent`; else the reason of the call's signal */
  async prepare(call: UpstreamCall): Promise<Prepared> {
    const { account, context } = call;
    if (account === undefined) throw new Error('a call with a credential has an account');
    const kept = this.#keptFor(account);
    try {
      const made = kept ?? (await this.#made(call, account));
      const refused = () => {
        if (this.#kept.get(account) === made) this.#kept.delete(account); // never a newer one
        return kept !== undefined;
      };
      return { headers: made.headers, secrets: [context.credential, ...made.secrets], refused };
    } catch (error) {
      throw error instanceof GatewayError ? unsent(error) : error;
    }
  }

  #keptFor(account: AccountId): Made | undefined {
    const kept = this.#kept.get(account);
    return kept && kept.until > this.#tools.clock.now() ? kept : undefined;
  }

  async #made(call: UpstreamCall, account: AccountId): Promise<Made> {
    const { context, controller } = call;
    let isOwn = false;
    const start = (ending: AbortController) => {
      isOwn = true;
      return this.#make(call, account, ending);
    };
    const { waitUntil } = context;
    const made = await this.#flights.join(account, {
      by: undefined,
      start,
      isAnew: false,
      waiter: controller.signal,
      waitUntil,
    });
    return isOwn || made.until > 0 ? made : this.#make(call, account, childOf(controller.signal));
  }

  /** `ending`: of the exchange, which others may wait for. It has the time of the request that it was begun for. */
  async #make(call: UpstreamCall, account: AccountId, ending: AbortController): Promise<Made> {
    const { clock } = this.#tools;
    const now = clock.now();
    const stopTimer = clock.after(call.endsAt - now, () =>
      ending.abort(GatewayError.of('upstream_timeout', { fault: 'not_sent' })),
    );
    try {
      return this.#keep(await this.#ask(call, ending.signal), { account, now, call });
    } finally {
      stopTimer();
    }
  }

  async #ask({ context }: UpstreamCall, signal: AbortSignal): Promise<Exchanged> {
    const exchange = this.#exchange;
    try {
      return await orAborted(signal, async () => exchange(context.credential, { signal }));
    } catch (error) {
      signal.throwIfAborted();
      const isRefusal = error instanceof GatewayError;
      if (isRefusal && error.status !== 500) throw error;
      const { logger } = this.#tools;
      throw faultOfHook('credential', error, { logger, context }, isRefusal ? INTERNAL : NOT_EXCHANGED);
    }
  }

  /** @throws GatewayError `internal_error` for what the hook may not give */
  #keep(given: Exchanged, { account, now, call: { context } }: Keeping): Made {
    try {
      const { headers: record, forSeconds = 0 } = given;
      const headers = checkHeaders('`credential`', record);
      const isTime = typeof forSeconds === 'number' && forSeconds >= 0;
      if (!isTime) throw new TypeError('`credential` gives a `forSeconds` that is no number of seconds');
      const until = forSeconds > 0 ? now + Math.min(forSeconds, MAX_SECONDS) * 1000 : 0;
      const made: Made = { headers, secrets: concealableIn(headers), until };
      if (until > 0) this.#kept.set(account, made);
      return made;
    } catch (error) {
      throw faultOfHook('credential', error, { ...this.#tools, context });
    }
  }
}

const NOT_EXCHANGED: Told = {
  code: 'upstream_unreachable',
  detail: 'The key could not be exchanged for one of the upstream.',
};

const INTERNAL: Told = {
  code: 'internal_error',
  detail: 'A function of this gateway’s operator has failed. Its log says which.',
};

interface Keeping {
  readonly account: AccountId;
  /** When the exchange began, from which on its time counts. */
  readonly now: number;
  readonly call: UpstreamCall;
}

/** The result, or the reason of the signal as soon as it is aborted, whether the work listens to it or not. */
function orAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stay = onAbort(signal, reject);
    void work().then(resolve, reject).finally(stay);
  });
}

/** A hook may have said anything else. A 401 says what is wanted (RFC 9110, section 15.5.2). */
function unsent(error: GatewayError): GatewayError {
  const wanted = error.status === 401 ? { 'WWW-Authenticate': 'Token' } : {};
  return error.with({ fault: 'not_sent', outcome: undefined, headers: { ...wanted, ...error.particulars.headers } });
}

/** What a client is told of a fault. */
interface Told {
  readonly code: ErrorCode;
  readonly detail?: string;
}

/** Nothing was sent. Logged here, since not every call belongs to one request that is answered with it. */
export function faultOfHook(
  name: string,
  cause: unknown,
  { logger, context }: { readonly logger: Logger; readonly context: RequestContext },
  { code, detail }: Told = INTERNAL,
): GatewayError {
  const thrown = cause instanceof GatewayError ? (cause.particulars.cause ?? cause) : cause;
  logFault(logger, context, thrown, hookFailed(name));
  return GatewayError.of(code, { fault: 'not_sent', detail, cause });
}
