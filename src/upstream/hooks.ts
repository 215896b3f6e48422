import { GatewayError, type Problem } from '../core/errors.ts';
import { isPlainObject } from '../core/json.ts';
import { hookFailed, type Logger, logFault } from '../core/logger.ts';
import type { Clock } from '../core/runtime.ts';
import type { UpstreamCall } from './call.ts';
import type { Method } from './operation.ts';

/** What a gateway does in its operator's way. Without hooks, and for an answer from the cache, they cost nothing. */
export interface Hooks {
  readonly onProblem?: OnProblem | undefined;
  readonly headers?: UpstreamHeaders | undefined;
}

/**
 * Gives a problem as clients are to see it. It may change `title` and `detail`, and add members; all others stay ours.
 * `operation`: the `operationId` of the request, if it has one.
 *
 * It is asked for every problem: whole answers, items of a batch, sections of overviews that failed. Where it throws, or
 * gives something else than a plain JSON object, a promise too, the problem goes out as it was, and the log says so.
 */
export type OnProblem = (problem: ToldProblem, request: { readonly operation: string | undefined }) => object;

/** A problem as JSON has it: a new object, the hook's own. */
export type ToldProblem = Problem & Record<string, unknown>;

/**
 * Gives the headers that go to the upstream in the place of `Authorization: Token <key>`. It is asked before each attempt
 * at a call, so a GET that is tried again has headers of its own. What the upstream answers is kept for the whole account,
 * so the headers may depend on nothing but what the hook is given.
 *
 * Where it throws, or gives what cannot be sent or is not its to name, nothing is sent: 500 `internal_error`, and the log
 * says so. Its time is that of the request: after that it is a 504.
 */
export type UpstreamHeaders = (asked: AskedHeaders) => HeaderRecord | Promise<HeaderRecord>;

/** Headers by name. One that is undefined is left out. */
type HeaderRecord = Readonly<Record<string, string | undefined>>;

export interface AskedHeaders {
  /** `path`: as the row has it, with `{id}`. */
  readonly operation: { readonly id: string; readonly method: Method; readonly path: string };
  /** The client's key; undefined for a row whose `credential` is `none`. */
  readonly credential: string | undefined;
  /** Aborted when nobody waits any more, or when the time is over. */
  readonly signal: AbortSignal;
}

interface Tools {
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The headers that the hook gives for an attempt: names and values in turn.
 * @throws GatewayError `internal_error` with the fault `not_sent`; the reason of the call's abort
 */
export async function headersBy(
  hook: UpstreamHeaders,
  { operation, request, abortable, endsAt }: UpstreamCall,
  { clock, logger }: Tools,
): Promise<string[]> {
  const { id, method, path } = operation;
  abortable.throwIfAborted();
  const controller = new AbortController();
  const late = GatewayError.of('upstream_timeout', { fault: 'not_sent' });
  const stopTimer = clock.after(endsAt - clock.now(), () => abortable.abort(late));
  const ended = Promise.withResolvers<never>();
  const stopListening = abortable.onAbort((reason) => {
    controller.abort(reason);
    ended.reject(reason);
  });
  const given = async () => {
    const credential = operation.credential === 'none' ? undefined : request.credential;
    return sendable(await hook({ operation: { id, method, path }, credential, signal: controller.signal }));
  };
  try {
    return await Promise.race([given(), ended.promise]);
  } catch (error) {
    abortable.throwIfAborted();
    logFault(logger, request, error, hookFailed('headers'));
    throw GatewayError.of('internal_error', { fault: 'not_sent', cause: error });
  } finally {
    stopTimer();
    stopListening();
  }
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible ASCII, with blanks between; or nothing. */
const VALUE = /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;

/**
 * Headers that the hook may not set: those that frame a message, those that the gateway sends, those that make the answer
 * another one than the cache takes it for, and cookies.
 */
const OURS = new Set(
  (
    'host content-length transfer-encoding connection te upgrade trailer keep-alive expect content-type content-encoding ' +
    'accept accept-encoding via user-agent idempotency-key x-request-id traceparent tracestate cookie range if-match ' +
    'if-none-match if-modified-since if-unmodified-since if-range forwarded http2-settings'
  ).split(' '),
);

/** @throws TypeError in words that quote no value */
function sendable(headers: unknown): string[] {
  if (!isPlainObject(headers)) throw new TypeError('`headers` gives no record');
  const named = new Set<string>();
  return Object.entries(headers).flatMap(([given, value]) => {
    if (value === undefined) return [];
    const name = given.toLowerCase();
    if (named.has(name)) throw new TypeError(`\`headers\` sets \`${name}\` twice`);
    named.add(name);
    if (!NAME.test(name)) throw new TypeError('`headers` names a header that cannot be sent');
    if (OURS.has(name) || /^(?:proxy|x-forwarded)-/.test(name))
      throw new TypeError(`\`headers\` sets \`${name}\`, which is the gateway's`);
    if (typeof value !== 'string' || !VALUE.test(value))
      throw new TypeError(`\`headers\` sets \`${name}\` to something that cannot be sent: expected visible ASCII`);
    return [name, value];
  });
}
