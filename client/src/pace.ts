import type { Globals } from './globals.ts';
import type { PorticoProblem } from './problem.ts';
import { pause, PAUSE_MS } from './send.ts';
import { isHidden, isOffline } from './turns.ts';

export const WAIT_SECONDS = 30;
/** From one request to the next, at least. */
const LEAST_MS = 1000;
/** Where the gateway does not say for how long its copies are fresh. */
const TTL_MS = 10_000;
/** From one request to the next while the page is hidden. */
const SLOW_MS = 300_000;
/** Requests without a wait, after two waits in a row that were cut off. */
const PLAIN = 30;
/** The longest of those that grow: random, from half of it to one and a half. */
const GROWN_MS = 20_000;
const OFFLINE_MS = 30_000;
const LONGEST_PAUSE_MS = 3_600_000;

/** When a watch asks again, and whether it then waits at the gateway. */
export function createPace(globals: Globals) {
  let isWaiting = false;
  let hasFailed = false;
  let cuts = 0; // waits that have failed since one was answered
  let plain = 0; // requests that will not wait
  let triedMs = 0;
  let gapMs = 0;

  const fail = () => {
    hasFailed = true;
    if (isWaiting && ++cuts > 1) plain = PLAIN;
    isWaiting = false;
  };

  return {
    fail,

    /** Whether the request that is sent now waits. After a failure an answer is wanted at once, whatever it is. */
    begin(hasEtag: boolean): boolean {
      triedMs = globals.Date.now();
      plain -= 1;
      return (isWaiting = hasEtag && plain < 0 && !hasFailed && !isHidden(globals));
    },

    /** Milliseconds to another try; undefined if the problem will not pass. */
    after({ retryable, status, retryAfter = 0 }: PorticoProblem, tries: number): number | undefined {
      fail();
      if (!retryable && status < 500) return undefined;
      gapMs = Math.min(retryAfter * 1000, LONGEST_PAUSE_MS);
      return Math.max(gapMs, isHidden(globals) ? SLOW_MS : isOffline(globals) ? OFFLINE_MS : grown(tries, globals));
    },

    /** Takes what an answer says: `hasDelta`, that it has no more than what has changed. Whether a try has failed before it. */
    hear({ headers }: Response, hasEtag: boolean, hasDelta: boolean): boolean {
      // A page of another origin may not see the header.
      const hasWaited =
        hasDelta ||
        /wait/.test(headers.get('Preference-Applied') ?? '') ||
        globals.Date.now() - triedMs > WAIT_SECONDS * 500;
      const mayWait = isWaiting ? hasWaited : plain < 1;
      gapMs = hasEtag && mayWait ? LEAST_MS : Math.max(LEAST_MS, ttlMsOf(headers));
      if (isWaiting) cuts = 0;
      const isBack = hasFailed;
      hasFailed = false;
      return isBack;
    },

    /** Until it is time to ask. */
    async rest(signal: AbortSignal): Promise<void> {
      const wantedMs = isHidden(globals) ? Math.max(gapMs, SLOW_MS) : gapMs;
      const leftMs = Math.min(wantedMs, triedMs + wantedMs - globals.Date.now()); // the clock may have been set
      if (leftMs > 0) await pause(globals, leftMs, signal);
    },
  };
}

/** Of a copy that is stale nothing is known. */
function ttlMsOf(headers: Headers): number {
  const [, seconds = -1] = /portico[^,]*; *ttl=(-?\d+)/.exec(headers.get('Cache-Status') ?? '') ?? [];
  return Number(seconds) < 0 ? TTL_MS : Number(seconds) * 1000;
}

const grown = (tries: number, { Math: { random } }: Globals) =>
  Math.min(GROWN_MS, PAUSE_MS * 2 ** tries) * (0.5 + random());
