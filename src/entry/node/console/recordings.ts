import type { OpenCircuit, Recorder, UnknownOutcome } from '../../../core/recorder.ts';
import type { ClientRequest } from '../../../core/request.ts';
import type { Clock } from '../../../core/runtime.ts';
import { legsOf, waitsIn } from '../../../core/timeline.ts';
import { VERSION } from '../../../core/version.ts';
import { Steps } from './steps.ts';

const MOST_REQUESTS = 200;
const MOST_UNKNOWN = 100;
/** Of one request: a batch may have hundreds. */
const MOST_PHASES = 60;

/** What the console shows of this process. A request costs some counters, and a copy of its phases if it has waited. */
export class Recordings implements Recorder {
  readonly #slowMs: number;
  readonly #clock: Clock;
  readonly #startedAt = Date.now();
  readonly #steps = new Steps();
  /** Those that were slow or failed, and others that have waited for more than the cache. */
  readonly #bad: Kept[] = [];
  readonly #good: Kept[] = [];
  readonly #unknown: UnknownOutcome[] = [];
  /** How many requests were kept so far. */
  #kept = 0;
  #circuit: () => OpenCircuit | undefined = () => undefined;

  constructor(slowMs: number, clock: Clock) {
    this.#clock = clock;
    this.#slowMs = slowMs;
  }

  answered(request: ClientRequest, status: number, endedAt: number): void {
    const { begunAt, reason, failed, phases } = request;
    const ms = endedAt - begunAt;
    const isFailed = status >= 500 || reason !== undefined || failed !== undefined;
    this.#steps.count(`${Math.trunc(status / 100)}xx`, endedAt);
    this.#steps.took(ms, endedAt);
    const isBad = isFailed || ms >= this.#slowMs;
    // What an open circuit refuses would take the place of what has opened it.
    const isRefused = isBad && this.#circuit() && !phases?.some(({ phase }) => phase === 'attempt');
    if ((isBad || phases) && !isRefused)
      add(isBad ? this.#bad : this.#good, MOST_REQUESTS, keep(request, { number: ++this.#kept, status, ms, isBad }));
  }

  unknown(write: UnknownOutcome): void {
    add(this.#unknown, MOST_UNKNOWN, write);
  }

  watchCircuit(read: () => OpenCircuit | undefined): void {
    this.#circuit = read;
  }

  /** How a read ended, or why a call failed. */
  count(what: string): void {
    this.#steps.count(what, this.#clock.now());
  }

  /** `since`: the number of the last request that is known already. Instants in milliseconds since 1970. */
  shown(since: number) {
    const now = this.#clock.now();
    const requests = [...this.#bad, ...this.#good]
      .filter(({ number }) => number > since)
      .map((kept) => {
        const legs = legsOf(kept.phases, { name: kept.operation, startedAt: 0, endedAt: kept.ms });
        return { ...kept, legs: legs.map(({ name, ms, phases }) => ({ name, ms, sums: Object.fromEntries(phases) })) };
      });
    return {
      at: Math.round(now),
      version: VERSION,
      startedAt: this.#startedAt,
      slowMs: this.#slowMs,
      circuit: this.#circuit() ?? null,
      plots: this.#steps.plots(now),
      requests: requests.toSorted((a, b) => a.number - b.number),
      unknown: this.#unknown,
    };
  }
}

function add<T>(list: T[], most: number, item: T): void {
  list.push(item);
  if (list.length > most) list.shift();
}

/** Plain data, so that neither the request nor its spans are kept. Phases are in milliseconds from its begin. */
function keep(request: ClientRequest, known: { number: number; status: number; ms: number; isBad: boolean }) {
  const { requestId, method, route, begunAt, account, code, reason, fresh, failed, stale } = request;
  const from = (at = Infinity) => tenths(Math.min(at - begunAt, known.ms));
  const phases = waitsIn(request.phases ?? []).slice(0, MOST_PHASES);
  return {
    ...known,
    id: requestId,
    at: Math.round(begunAt),
    ms: tenths(known.ms),
    operation: route.operation ?? `${method} ${route.name}`,
    account,
    code: code?.slice(0, 128),
    reason,
    sections: { fresh, failed, stale },
    phases: phases.map(({ phase, leg, status, outcome, reason: why, joined, start, end }) => {
      const what = { phase, leg, status, outcome, reason: why, joined: joined?.requestId };
      return { ...what, start: from(start), end: from(end) };
    }),
  };
}

type Kept = ReturnType<typeof keep>;

const tenths = (ms: number) => Math.round(ms * 10) / 10;
