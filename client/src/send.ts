import type { CallOptions } from './types.ts';
import { problemIn, PorticoProblem, problemWithout, type Wire } from './wire.ts';

/** What the client uses of what is global. Not every runtime has all of it. */
export interface Globals extends Partial<Pick<EventTarget, 'addEventListener' | 'removeEventListener'>> {
  readonly Date: Pick<DateConstructor, 'now'>;
  readonly Math: Pick<Math, 'random'>;
  readonly fetch: typeof globalThis.fetch;
  readonly crypto?: { readonly randomUUID?: (() => string) | undefined } | undefined;
  readonly document?: (EventTarget & { readonly visibilityState?: string }) | undefined;
  readonly navigator?: { readonly onLine?: boolean } | undefined;
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** A pause before another try: why, how long, and how many tries have failed. */
export type Retry = Readonly<{ problem: PorticoProblem; waitMs: number; tries: number }>;

/** Where and how calls are sent. */
export interface Target {
  /** Of the gateway, without a path. Without it, the page's own origin. */
  readonly url?: string | undefined;
  /** The account's key; a function is asked before each try. Without one the browser's session counts. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** `include` for a session on another subdomain. */
  readonly credentials?: 'omit' | 'same-origin' | 'include' | undefined;
  /** How often what may be tried again is: twice unless given. */
  readonly retries?: number | undefined;
  /** How many milliseconds the pauses before the tries of a call may take together: a minute unless given. */
  readonly maxWait?: number | undefined;
  /** Hears of each pause before another try, when it begins. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** What is used in place of what is global: the clock, chance, timers, and what is known of the page. For tests. */
  readonly globals?: Globals | undefined;
}

export interface Sender {
  readonly target: Target;
  readonly globals: Globals;
  /** The browser's, as far as the calls of this client tell: it has another number once the account may be another one. */
  session: { readonly number: number; readonly account?: string | undefined };
}

/** Who makes a call: a credential, or the number of a session. */
export type Caller = string | number;
/** What was answered, and the text that it stands in. */
export type Answered = readonly [value?: unknown, text?: string];
/** How a try begins: with headers to add, or with an answer, and then nothing is sent. */
export type Begun = readonly [headers?: Wire['headers'] | undefined, answered?: Answered];
export type Trying = readonly [
  begin: (caller: Caller) => Promise<Begun>,
  read: (response: Response) => Promise<Answered>,
];

/** Options of a call that is part of another. */
export interface Calling extends CallOptions {
  /** Whose calls these are, where several belong together. The first try says it. */
  readonly caller?: { is?: Caller } | undefined;
  /** Milliseconds to another try; undefined if there is to be none. */
  readonly waitOf?: ((problem: PorticoProblem, tries: number) => number | undefined) | undefined;
  readonly onRetry?: Target['onRetry'];
}

/** The credential to be sent with these headers, and who the caller is by it. Rejects where it cannot be sent. */
export async function credentialFor(sender: Sender, { authorization, cookie }: Wire['headers']) {
  const { token } = sender.target;
  const key = typeof token === 'function' ? await token() : token;
  if (/[^!-~]/.test(key ?? '')) throw new TypeError('bad token'); // the error of fetch would show it
  const sent = authorization ?? (key ? `Token ${key}` : undefined);
  return [sent, sent ?? cookie ?? sender.session.number] as const;
}

/** Doubled for each try: about 250 ms after the first, 500 after the second. */
export const PAUSE_MS = 125;

/**
 * Sends a call. A read goes out again where that may help. A write goes out again only if its problem proves that nothing
 * happened. Nothing goes out again as another account: `isSignedIn` asks the gateway. Reading the answer is part of a try.
 */
export async function send(
  sender: Sender,
  wire: Wire,
  [begin, read, isSignedIn]: readonly [...Trying, isSignedIn: () => boolean | Promise<boolean>],
  options: Calling,
): Promise<Answered> {
  const { target, globals } = sender;
  const { fetch = globals.fetch, credentials, url = '' } = target;
  const { signal, caller = {}, waitOf = patience(sender, wire), onRetry = target.onRetry } = options;
  const { method, path, body = null, headers } = wire;
  // A mistake in the code, and no failed connection.
  if (!target.fetch && !/^https?:/.test(url || globalThis.location?.href)) throw new TypeError(`no http url: ${url}`);
  let failed: PorticoProblem | undefined;
  for (let tries = 1; ; tries += 1) {
    // What it throws is the caller's own, and nothing is sent.
    const [authorization, is] = await unlessAborted(credentialFor(sender, headers), signal);
    if ((caller.is ??= is) !== is) throw failed ?? problemWithout('account_changed', wire);
    try {
      const [more, answered] = await unlessAborted(begin(is), signal);
      if (answered) return answered;
      const response = await fetch(url.replace(/\/$/, '') + path, {
        method,
        headers: { ...more, ...headers, ...(authorization && { authorization }) },
        body,
        signal: signal ?? null,
        ...(credentials && { credentials }), // Workers take none
        redirect: 'manual', // a key in a body would go to another host
      });
      if (!response.ok && response.status !== 304) throw await problemIn(response, wire);
      return await read(response);
    } catch (error) {
      if (signal?.aborted) throw reasonOf(signal, error);
      failed = error instanceof PorticoProblem ? error : problemWithout('connection_failed', wire, error);
      Object.assign(failed, { idempotencyKey: headers['idempotency-key'] });
      const waitMs = waitOf(failed, tries);
      if (waitMs === undefined) throw failed;
      onRetry?.({ problem: failed, waitMs, tries });
      await pause(globals, waitMs, signal);
    }
    // A cookie cannot be looked at, and may be another one since.
    const isSame = async () => typeof is !== 'number' || isSignedIn();
    if (!(await unlessAborted(isSame(), signal))) throw failed;
  }
}

/** How long a call waits before another try: as the answer says, or at random, and all pauses together no longer than it may. */
function patience({ target: { retries = 2, maxWait: leftMs = 60_000 }, globals }: Sender, { isRead }: Wire) {
  return ({ retryable, retryAfter, outcome, status }: PorticoProblem, tries: number): number | undefined => {
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
