import type { Globals } from './globals.ts';
import type { Problem } from './openapi.ts';
import { PorticoProblem } from './problem.ts';
import type { Wire } from './request.ts';
import type { CallOptions } from './types.ts';

/** Where and how calls are sent. */
export interface Target {
  /** Of the gateway, without a path. Without it, the page's own origin. */
  readonly url?: string | undefined;
  /**
   * The account's key; a function is asked before each try, and where it returns another one than for the first there is no
   * other try. Without one the browser's session counts.
   */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** `include` for a session on another subdomain. */
  readonly credentials?: 'omit' | 'same-origin' | 'include' | undefined;
  /** How often what may be tried again is: twice unless given. */
  readonly retries?: number | undefined;
  /** How many milliseconds the pauses before the tries of a call may take together: a minute unless given. */
  readonly maxWait?: number | undefined;
  /** Hears of each pause before another try, when it begins. */
  readonly onRetry?: OnRetry | undefined;
  /** What is used in place of what is global: the clock, chance, timers, and what is known of the page. For tests. */
  readonly globals?: Globals | undefined;
}

/** A pause before another try. */
export interface Retry {
  /** Why. */
  readonly problem: PorticoProblem;
  readonly waitMs: number;
  /** How many have failed. */
  readonly tries: number;
}

type OnRetry = (retry: Retry) => void;

/** The browser's session, as far as the calls of this client tell. */
interface Session {
  /** Another one after each sign-in and sign-out, and where `getSession` tells of another account. */
  readonly number: number;
  /** Undefined too where nobody has told it. */
  readonly account?: string | undefined;
}

export interface Sender {
  readonly target: Target;
  readonly globals: Globals;
  session: Session;
}

/** Who makes a call, or several that belong together: a credential, or the number of a session. The first try says it. */
interface Caller {
  is?: string | number;
}

/** Options of a call that is part of another. */
export interface Calling extends CallOptions {
  readonly caller?: Caller | undefined;
  /** What a try sends, and how its answer is read, where that is not as usual. */
  readonly trying?: Trying | undefined;
  /** Milliseconds to another try; undefined if there is to be none. */
  readonly waitOf?: WaitOf | undefined;
  readonly onRetry?: OnRetry | undefined;
}

/** What was answered, and the text that it stands in. */
export interface Answered {
  readonly value?: unknown;
  readonly text?: string;
}

type WaitOf = (problem: PorticoProblem, tries: number) => number | undefined;

interface Trying {
  /** Headers to add to a try of this caller. Its own of the same name stay. */
  readonly conditions: (caller: string | number) => Promise<Wire['headers'] | undefined>;
  readonly read: (response: Response) => Promise<Answered> | Answered;
}

/** The credential to be sent with these headers, and who the caller is by it. Rejects where it cannot be sent. */
export async function credentialFor(
  { target: { token }, session }: Sender,
  { authorization, cookie }: Wire['headers'],
) {
  const key = typeof token === 'function' ? await token() : token;
  if (/[^!-~]/.test(key ?? '')) throw new TypeError('bad token'); // the error of fetch would show it
  const sent = authorization ?? (key ? `Token ${key}` : undefined);
  return { sent, is: sent ?? cookie ?? session.number };
}

/** Doubled for each try: about 250 ms after the first, 500 after the second. */
export const PAUSE_MS = 125;
const MAX_WAIT_MS = 60_000;

interface Sending extends Trying {
  readonly options: Calling;
  /** Whether the gateway says that the account is still the one that is signed in. */
  readonly isSignedIn: () => Promise<boolean>;
}

/**
 * Sends a call. Reads go out again where that may help, as often as `retries` says. `read` is part of a try: an answer that breaks off is a try that failed.
 * A write goes out again only if its problem proves that nothing happened; nothing goes out again as another account.
 * Rejects with a `PorticoProblem`, or with the reason of the signal.
 */
export async function send(sender: Sender, wire: Wire, sending: Sending): Promise<Answered> {
  const { target, globals } = sender;
  const { options, isSignedIn, conditions, read } = sending;
  const { signal, caller = {}, waitOf = patience(sender, wire), onRetry = target.onRetry } = options;
  const url = urlOf(target);
  let failed: PorticoProblem | undefined;
  for (let tries = 1; ; tries += 1) {
    // What it throws is the caller's own, and nothing is sent.
    const { sent, is } = await unlessAborted(credentialFor(sender, wire.headers), signal);
    if ((caller.is ??= is) !== is) throw failed ?? problemWithout('account_changed', wire);
    try {
      const { fetch = globals.fetch, credentials } = target;
      const more = await unlessAborted(conditions(is), signal);
      const response = await fetch(url + wire.path, {
        method: wire.method,
        headers: { ...more, ...wire.headers, ...(sent && { authorization: sent }) },
        body: wire.body ?? null,
        signal: signal ?? null,
        ...(credentials && { credentials }), // Workers take none
        redirect: 'manual', // a key in a body would go to another host
      });
      if (!response.ok && response.status !== 304) throw await problemOf(response, wire);
      return await read(response);
    } catch (error) {
      if (signal?.aborted) throw reasonOf(signal, error);
      failed = error instanceof PorticoProblem ? error : problemWithout('connection_failed', wire, error);
      Object.assign(failed, { idempotencyKey: wire.headers['idempotency-key'] });
      const waitMs = waitOf(failed, tries);
      if (waitMs === undefined) throw failed;
      onRetry?.({ problem: failed, waitMs, tries });
      await pause(globals, waitMs, signal);
    }
    // A cookie cannot be looked at, and may be another one since.
    if (typeof is === 'number' && !(await isSignedIn().catch(() => false)))
      throw signal?.aborted ? reasonOf(signal) : failed;
  }
}

/** Throws where nothing can be sent: that is a mistake in the code, and no failed connection. */
function urlOf({ url = '', fetch }: Target): string {
  if (!fetch && !/^https?:/.test(url || globalThis.location?.href)) throw new TypeError(`no http url: ${url}`);
  return url.replace(/\/$/, '');
}

async function problemOf(response: Response, wire: Wire): Promise<PorticoProblem> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as Problem;
    if (isOurs(problem, response)) return new PorticoProblem(problem);
  } catch {
    // no JSON, or not the problem's members
  }
  return problemWithout('unexpected_answer', wire, text, response);
}

/** Whether the gateway has sent it, and nothing between us and the gateway. */
const isOurs = ({ type, status, code, retryable }: Problem, response: Response) =>
  /^application\/problem\+json *(;|$)/i.test(response.headers.get('Content-Type') ?? '') &&
  status === response.status &&
  type.endsWith(`/problems/${code}`) &&
  typeof retryable === 'boolean';

const TITLES = {
  connection_failed: 'No answer from the gateway',
  unexpected_answer: 'Not the gateway’s answer',
  account_changed: 'The account has changed',
} as const;

/** For a call without an answer of the gateway's that can be read. A write may have happened, whatever else has answered. */
export function problemWithout(
  code: keyof typeof TITLES,
  { isRead, path }: Wire,
  cause?: unknown,
  response?: Response,
): PorticoProblem {
  const status = response?.status ?? 0;
  const retryAfter = Number(response?.headers.get('Retry-After') ?? NaN);
  const problem: Problem = {
    type: 'about:blank',
    title: TITLES[code],
    status,
    code,
    detail: `${TITLES[code]}.`,
    instance: path,
    request_id: '',
    retryable: isRead && (status < 400 || status === 429 || status >= 500),
    ...(retryAfter >= 0 && { retry_after: retryAfter }),
    ...(!isRead && { outcome: 'unknown' }),
    errors: [],
  };
  return new PorticoProblem(problem, cause);
}

/** How long a call waits before another try: as the answer says, or at random, and all pauses together no longer than it may. */
function patience({ target: { retries = 2, maxWait = MAX_WAIT_MS }, globals }: Sender, { isRead }: Wire): WaitOf {
  let leftMs = maxWait;
  return ({ retryable, retryAfter, outcome, status }, tries) => {
    // A write that is refused with 409 is under way elsewhere: once that is over it would be sent a second time.
    if (tries > retries || !retryable || (!isRead && (outcome || status === 409))) return undefined;
    const waitMs = retryAfter === undefined ? PAUSE_MS * 2 ** tries * (0.5 + globals.Math.random()) : retryAfter * 1000;
    leftMs -= waitMs;
    return leftMs < 0 ? undefined : waitMs;
  };
}

export function pause(globals: Globals, ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: unknown;
  const passed = new Promise<void>((resolve) => (timer = globals.setTimeout(resolve, ms)));
  return unlessAborted(passed, signal).finally(() => globals.clearTimeout(timer));
}

/** React Native knows no reason. */
export const reasonOf = ({ reason }: AbortSignal, otherwise: unknown = new Error('aborted')): unknown =>
  reason ?? otherwise;

/** Rejects with the reason of the signal where that is aborted before. */
export const unlessAborted = <T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> =>
  new Promise((resolve, reject) => {
    const leave = () => reject(signal && reasonOf(signal));
    signal?.addEventListener('abort', leave);
    void promise.then(resolve, reject).finally(() => signal?.removeEventListener('abort', leave));
  });
