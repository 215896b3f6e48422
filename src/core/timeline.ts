import type { Reason } from './errors.ts';

/**
 * What the time of a request goes to: `gates` until a call may be sent, `slot` in the queue for one, `store` asking the shared
 * store, `joined` to another request's call, `attempt` at the upstream,
 * `back-off` between two of these; `own` is all that is left.
 */
export const PHASES = ['own', 'gates', 'slot', 'store', 'joined', 'attempt', 'back-off'] as const;
export type PhaseName = (typeof PHASES)[number];

/** What became of an attempt. */
export const CALL_OUTCOMES = ['good', 'refused', 'failed', 'abandoned'] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** The leg of what goes on behind an answer, such as the refresh of a stale copy: the request has not waited for it. */
export const BACKGROUND = '(background)';

/** A request, by its ids. */
export interface Joined {
  readonly requestId: string;
  readonly span: RequestSpan['ids'] | undefined;
}

/** The trace that a request belongs to (W3C Trace Context). */
export interface Trace {
  readonly traceId: string;
  readonly flags: string;
  readonly tracestate: string | undefined;
  /** The client's span. Absent where the trace does not come from the client. */
  readonly parentId?: string | undefined;
}

/** The span of a request (OpenTelemetry). Of its phases only the attempts have theirs as they go; all others get it at the end. */
export interface RequestSpan {
  /** For those who wait for its call. */
  readonly ids: object;
  attempt(phase: Phase, sent: Sent): AttemptSpan;
  /** `endedAt`: in milliseconds of the process's clock. */
  end(status: number, endedAt: number): void;
}

export interface AttemptSpan {
  /** What the upstream is told (W3C Trace Context). */
  readonly traceparent: string;
  end(phase: Phase): void;
}

/** What an attempt sends. */
export interface Sent {
  readonly operation: { readonly id: string; readonly method: string; readonly path: string };
  /** How often the same call was sent before. */
  readonly resends: number;
}

/**
 * One thing that a request has waited for, or a leg of it: a part that goes on by itself, such as a section of an overview or
 * an item of a batch. Instants in milliseconds of the process's clock.
 */
export class Phase {
  readonly phase: Exclude<PhaseName, 'own'>;
  readonly leg: string | undefined;
  readonly start: number;
  /** Undefined while it goes on. */
  end: number | undefined;
  /** Of an attempt only: the upstream's status, if it gave one, and what became of the attempt. */
  status: number | undefined;
  outcome: CallOutcome | undefined;
  reason: Reason | undefined;
  span: AttemptSpan | undefined;
  /** The request whose call it waits for. Not that itself: each would keep the one before it, without end. */
  joined: Joined | undefined;

  constructor(phase: Phase['phase'], start: number, leg: string | undefined) {
    this.phase = phase;
    this.leg = leg;
    this.start = start;
    this.end = undefined;
    this.status = undefined;
    this.outcome = undefined;
    this.reason = undefined;
    this.span = undefined;
    this.joined = undefined;
  }

  /** What became of an attempt, once its end is set. */
  settle(outcome: CallOutcome, reason?: Reason): void {
    this.outcome = outcome;
    this.reason = reason;
    this.span?.end(this);
  }
}

type Wait = Pick<Phase, 'phase' | 'leg' | 'start' | 'end' | 'reason'>;

/** A shorter wait makes no leg: what was asked for was there already. */
const LEAST_MS = 0.05;

/** Where the time of a leg went, in milliseconds. Of phases at the same time the earlier one counts. */
export interface LegTimes {
  readonly name: string;
  /** From the begin of the request to the end of the leg. */
  readonly ms: number;
  readonly phases: ReadonlyMap<PhaseName, number>;
  /** Why the last attempt that failed did so. */
  readonly reason: Reason | undefined;
}

/**
 * The legs of a request; one where it has none. What no leg waits for alone is in each. The last to end is as long as the
 * request, and so are its phases together.
 */
export function legsOf(
  all: readonly Wait[],
  { name, startedAt, endedAt }: { readonly name: string; readonly startedAt: number; readonly endedAt: number },
): LegTimes[] {
  const phases = waitsIn(all);
  const long = phases.filter(({ start, end = endedAt }) => end - start >= LEAST_MS);
  const names = [...new Set(long.map(({ leg }) => leg))].filter((leg) => leg !== undefined);
  const legs = names.length > 0 ? names : [undefined];
  const endOf = ({ end = endedAt }: Wait) => Math.min(end, endedAt);
  const ends = legs.map((leg) => Math.max(...phases.filter((one) => one.leg === leg).map(endOf)));
  const last = Math.max(...ends);
  return legs.map((leg, at) => {
    const own = phases.filter((one) => one.leg === leg || one.leg === undefined);
    const until = ends[at] === last ? endedAt : (ends[at] ?? endedAt);
    const ms = until - startedAt;
    return {
      name: leg ?? name,
      ms,
      phases: sumsOf(own, startedAt, until),
      reason: own.findLast(({ reason }) => reason !== undefined)?.reason,
    };
  });
}

/** What the request itself has waited for. */
export const waitsIn = <W extends Wait>(phases: readonly W[]): readonly W[] =>
  phases.some(({ leg }) => leg === BACKGROUND) ? phases.filter(({ leg }) => leg !== BACKGROUND) : phases;

/** Milliseconds in which nothing was waited for. */
export const ownMsOf = (waits: readonly Wait[], from: number, until: number): number =>
  sumsOf(waits, from, until).get('own') ?? 0;

function sumsOf(phases: readonly Wait[], from: number, until: number): ReadonlyMap<PhaseName, number> {
  const sums = new Map<PhaseName, number>([['own', until - from]]);
  let at = from;
  for (const { phase, start, end = until } of phases.toSorted((a, b) => a.start - b.start)) {
    const ms = Math.min(end, until) - Math.max(start, at);
    if (ms <= 0) continue;
    sums.set(phase, (sums.get(phase) ?? 0) + ms);
    sums.set('own', (sums.get('own') ?? 0) - ms);
    at = Math.min(end, until);
  }
  return sums;
}
