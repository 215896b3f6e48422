import { useSyncExternalStore } from 'react';

/** A call of the page, and what the gateway did about it. */
export interface Call {
  readonly number: number;
  readonly method: string;
  readonly url: string;
  readonly startedAt: number;
  /** While there is none, the answer is awaited; 0 if none came. */
  readonly status?: number;
  readonly cacheStatus?: string | null;
  /** Only the sections that had changed came. */
  readonly isPart?: boolean;
  /** Bytes of the body that came, and those that were left out: the page had them, or they were compressed away. */
  readonly sent?: number;
  readonly notSent?: number;
}

const KEPT = 1_000;
/** What Resource Timing adds to a body for the head, whatever it was. */
const HEAD = 300;

let calls: readonly Call[] = [];
let last = 0;
const changed = new EventTarget();
/** Bytes of the last whole answer, by address. */
const wholes = new Map<string, number>();

function put(next: readonly Call[]): void {
  calls = next.slice(-KEPT);
  changed.dispatchEvent(new Event('changed'));
}

const change = (number: number, what: Partial<Call>) =>
  put(calls.map((call) => (call.number === number ? { ...call, ...what } : call)));

/** `fetch`, with a note of what came of it. */
export async function notedFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const { href: url } = new URL(input instanceof Request ? input.url : input, location.href);
  const number = ++last;
  put([...calls, { number, method: init.method ?? 'GET', url, startedAt: performance.now() }]);
  try {
    const response = await fetch(input, init);
    const { status, headers } = response;
    const isPart = /changed-sections/.test(headers.get('Preference-Applied') ?? '');
    change(number, { status, cacheStatus: headers.get('Cache-Status'), isPart });
    // Whoever reads a stream stops at its last line. It is read to its end here: else the browser tells no size.
    if (headers.get('Content-Type') === 'application/x-ndjson')
      void response
        .clone()
        .text()
        .catch(() => undefined);
    return response;
  } catch (error) {
    if (init.signal?.aborted) put(calls.filter((call) => call.number !== number));
    else change(number, { status: 0 });
    throw error;
  }
}

/** Sizes are known to the browser only, and once all is there. */
function measured(entry: PerformanceResourceTiming): void {
  const { name, startTime, transferSize, encodedBodySize, decodedBodySize } = entry;
  const call = calls.findLast(
    ({ url, startedAt, sent }) => url === name && startedAt <= startTime + 1 && sent === undefined,
  );
  if (!call?.status) return;
  const sent = Math.max(0, transferSize - HEAD);
  const isKnown = call.status === 304 || call.isPart === true;
  const whole = isKnown ? (wholes.get(name) ?? sent) : decodedBodySize;
  if (!isKnown) wholes.set(name, whole);
  // A copy of the browser's that the gateway has confirmed reaches the page as 200.
  const isConfirmed = sent === 0 && encodedBodySize > 0;
  change(call.number, { sent, notSent: Math.max(0, whole - sent), ...(isConfirmed && { status: 304 }) });
}

new PerformanceObserver((list) => (list.getEntries() as PerformanceResourceTiming[]).forEach(measured)).observe({
  type: 'resource',
});

/** Nothing of an account stays for the next one. */
export function forgetCalls(): void {
  wholes.clear();
  put([]);
}

function subscribe(listener: () => void): () => void {
  changed.addEventListener('changed', listener);
  return () => changed.removeEventListener('changed', listener);
}

/** All calls that are kept, oldest first. */
export const useCalls = () => useSyncExternalStore(subscribe, () => calls);
