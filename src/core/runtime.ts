/** What the core needs of a runtime. `entry/` builds these; tests pass their own. */

/** The clock, in milliseconds since 1970, and the only timer in use. */
export interface Clock {
  /** Never goes back, and may stand still while the machine sleeps. */
  now(): number;
  /** The time of day, which an operator may set forward and back. */
  wall(): number;
  /** Runs once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** Keeps work alive that outlives its request, as an execution context of Workers does; on Node the drain awaits it. */
export type WaitUntil = (work: Promise<unknown>) => void;

export interface Digest {
  /** `portico-` and 12 characters: the gateway's name in `Via`. On Node all instances with the same secrets have the same. */
  readonly gatewayId: string;
  /** Keyed hash of a credential, the store's `AccountId`. Under another secret it is another one. */
  account(credential: string): MaybePromise<string>;
  /** Keyed hash of a client's address, for the log. */
  address(address: string): MaybePromise<string>;
  /** Hash of a body, for a strong ETag. */
  body(text: string): MaybePromise<string>;
}

/** Makes a function that opens sealed values (base64url) of one purpose without waiting. It returns undefined for any others. */
export type MakeOpener = (
  secrets: readonly string[],
  purpose: string,
) => (additionalData: string, value: string) => string | undefined;

/** A value, or the promise of a value that is not there yet. A value that is there costs neither a promise nor a turn. */
export type MaybePromise<T> = T | Promise<T>;

/** Calls `next` with the value, at once if it is there. */
export function whenDone<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/**
 * Resolves with the reply. Rejects if there is none after `ms` milliseconds and one more turn: after a stall of the event loop,
 * timers run before replies are read from the socket.
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

/** Resolves after `ms` milliseconds. */
export const pause = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => void clock.after(ms, resolve));

/**
 * Milliseconds since both clocks said `now` and `wall`. The clock counts that has advanced further: `now` may stand still
 * while the machine sleeps, and `wall` may be set back.
 */
export const msSince = (clock: Pick<Clock, 'now' | 'wall'>, now: number, wall: number): number =>
  Math.max(clock.now() - now, clock.wall() - wall);

/** Returns a function that tells how many milliseconds have passed since this call. */
export function stopwatch(clock: Clock): () => number {
  const [now, wall] = [clock.now(), clock.wall()];
  return () => msSince(clock, now, wall);
}
