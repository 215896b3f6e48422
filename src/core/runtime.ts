/** What the core needs of a runtime. `entry/` builds these; tests pass their own. */

/** Milliseconds since the epoch, and the only timer in use. */
export interface Clock {
  /** Never goes back, and may stand still while the machine sleeps. */
  now(): number;
  /** The time of day, which may be set forth and back. */
  wall(): number;
  /** Runs once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** Keeps work alive that outlives its request, as an execution context of Workers does; on Node the drain awaits it. */
export type WaitUntil = (work: Promise<unknown>) => void;

export interface Digest {
  /** `portico-` and 12 characters: names the gateway in `Via`. On Node the same for all instances with these secrets. */
  readonly gatewayId: string;
  /** Keyed hash of a credential, one for each secret: an `AccountId` of the store. */
  account(credential: string): MaybePromise<string>;
  /** Keyed hash of a client's address, for logs. */
  address(address: string): MaybePromise<string>;
  /** Hash of a body, for a strong ETag. */
  body(text: string): MaybePromise<string>;
}

/** Makes what opens sealed values (base64url) without waiting, for one purpose; undefined for what was not sealed for it. */
export type MakeOpener = (
  secrets: readonly string[],
  purpose: string,
) => (additionalData: string, value: string) => string | undefined;

/** A value, or a promise of one that is not there yet. What is there costs neither a promise nor a turn. */
export type MaybePromise<T> = T | Promise<T>;

/** Goes on with the value, at once if it is there. */
export function whenDone<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/**
 * The reply, or an error if there is none in time. Waits one more turn after the time is up: after a stall of the event
 * loop, timers run before replies are read from the socket.
 */
export function within<T>(clock: Clock, ms: number, reply: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(new Error(`no reply in ${ms} ms`));
    let cancel = clock.after(ms, () => {
      cancel = clock.after(0, fail);
    });
    reply.then(resolve, reject).finally(() => cancel());
  });
}

/** Resolves after so many milliseconds. */
export const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.after(ms, resolve));

/**
 * Milliseconds since this call, by the clock that has advanced further: one may stand still while the machine sleeps, and
 * the other may be set back.
 */
export function stopwatch(clock: Clock): () => number {
  const [now, wall] = [clock.now(), clock.wall()];
  return () => Math.max(clock.now() - now, clock.wall() - wall);
}
