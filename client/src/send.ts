import type { Copy } from './copies.ts';
import type { CallOptions } from './types.ts';
import { problemIn, PorticoProblem, problemWithout, type Wire } from './wire.ts';

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
  /** Hears of each pause before another try, when it begins. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
}

export interface Sender {
  readonly target: Target;
  /** The number of the browser's session: another one once this client has signed in or out. */
  session: number;
}

/** Who makes a call: a credential, or the number of a session. */
export type Caller = string | number;
/** How a try begins: with headers to add, or with a value, and then nothing is sent. How its answer is read. */
export type Trying = readonly [
  begin: (caller: Caller) => Promise<{ readonly headers?: Wire['headers'] | undefined; readonly value?: unknown }>,
  read: (response: Response) => Promise<unknown>,
];

/** Options of a call that is part of another. */
export interface Calling extends CallOptions {
  /** Where tries are not as usual: made of the usual beginning, which gives the copy of whoever the call is sent for. */
  readonly trying?: ((copyFor: (caller: Caller) => Promise<Copy>) => Trying) | undefined;
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
  return [sent, sent ?? cookie ?? sender.session] as const;
}

/** Doubled for each try: about 250 ms after the first, 500 after the second. */
export const PAUSE_MS = 125;

/**
 * Sends a call. A read goes out again where that may help. A write goes out again only if its problem proves that nothing
 * happened, and never by cookie: another account may be signed in since. Reading the answer is part of a try.
 */
export async function send(sender: Sender, wire: Wire, [begin, read]: Trying, options: Calling): Promise<unknown> {
  const { target } = sender;
  const { fetch = globalThis.fetch, credentials, url = '' } = target;
  const { signal, caller = {}, waitOf = patience(target, wire), onRetry = target.onRetry } = options;
  const { method, path, body = null, headers } = wire;
  // A mistake in the code, and no failed connection.
  if (!target.fetch && !/^https?:/.test(url || globalThis.location?.href)) throw new TypeError(`no http url: ${url}`);
  let failed: PorticoProblem | undefined;
  for (let tries = 1; ; tries += 1) {
    // What it throws is the caller's own, and nothing is sent.
    const [authorization, is] = await unlessAborted(credentialFor(sender, headers), signal);
    if ((caller.is ??= is) !== is) throw failed ?? problemWithout('account_changed', wire);
    try {
      const begun = await unlessAborted(begin(is), signal);
      if (begun.value) return begun.value;
      const response = await fetch(url.replace(/\/$/, '') + path, {
        method,
        headers: { ...begun.headers, ...headers, ...(authorization && { authorization }) },
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
      const waitMs = typeof is === 'string' || wire.isRead ? waitOf(failed, tries) : undefined;
      if (waitMs === undefined) throw failed;
      onRetry?.({ problem: failed, waitMs, tries });
      await pause(waitMs, signal);
    }
  }
}

/** How long a call waits before another try: as the answer says, or at random. All its pauses together last a minute at most. */
function patience({ retries = 2 }: Target, { isRead }: Wire) {
  let leftMs = 60_000;
  return ({ retryable, retryAfter, outcome, status }: PorticoProblem, tries: number): number | undefined => {
    // A write that is refused with 409 is under way elsewhere: once that is over it would be sent a second time.
    if (tries > retries || !retryable || (!isRead && (outcome || status === 409))) return undefined;
    const waitMs = retryAfter === undefined ? PAUSE_MS * 2 ** tries * (0.5 + Math.random()) : retryAfter * 1000;
    leftMs -= waitMs;
    return leftMs < 0 ? undefined : waitMs;
  };
}

export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const passed = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  return unlessAborted(passed, signal).finally(() => clearTimeout(timer));
}

/** React Native knows no reason. */
export const reasonOf = ({ reason }: AbortSignal, otherwise: unknown = new Error('aborted')): unknown =>
  reason ?? otherwise;

/** Rejects with the reason of the signal where that is aborted before, or already. */
export const unlessAborted = <T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> =>
  new Promise((resolve, reject) => {
    const leave = () => reject(signal && reasonOf(signal));
    if (signal?.aborted) leave();
    signal?.addEventListener('abort', leave);
    void promise.then(resolve, reject).finally(() => signal?.removeEventListener('abort', leave));
  });
