import type { Reason } from './errors.ts';

/**
 * What a request spends its time on: `gates` waiting for the hook `headers`, `slot` waiting for a slot, `store` asking the
 * shared store, `joined` waiting for another call, `attempt` at the upstream, `back-off` between two attempts. `own` is the rest.
 */
export const PHASES = ['own', 'gates', 'slot', 'store', 'joined', 'attempt', 'back-off'] as const;
export type PhaseName = (typeof PHASES)[number];

/** What became of an attempt. */
export const CALL_OUTCOMES = ['good', 'refused', 'failed', 'abandoned'] as const;
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** The leg of work that the request does not wait for, such as the refresh of a stale copy. */
export const BACKGROUND = '(background)';

/** The ids of the request whose call another one has joined. */
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

/** The span of a request (OpenTelemetry). Attempts get their spans when they begin; all other phases when the request ends. */
export interface RequestSpan {
  /** For requests that join its call. */
  readonly ids: object;
  /** Its ids as a request has them that comes in this one (W3C Trace Context). */
  readonly traceparent: string;
  attempt(phase: Phase, sent: Sent): AttemptSpan;
  /** `endedAt`: in milliseconds of the process's clock. */
  end(status: number, endedAt: number): void;
}

export interface AttemptSpan {
  /** What the upstream is told (W3C Trace Context). */
  readonly traceparent: string;
  end(phase: Phase): void;
}

/** The call that an attempt belongs to. */
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
  /** The request whose call it waits for. Only ids: a reference would keep that request, and the one it joined, and so on. */
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

/** Milliseconds. A shorter wait makes no leg: what was asked for was there already. */
const LEAST_MS = 0.05;

/** Where the time of a leg went, in milliseconds. Where two phases overlap, the time counts for the earlier one. */
export interface LegTimes {
  readonly name: string;
  /** From the beginning of the request to the end of the leg. */
  readonly ms: number;
  readonly phases: ReadonlyMap<PhaseName, number>;
  /** Why the last attempt that failed did so. */
  readonly reason: Reason | undefined;
}

/**
 * The legs of a request; a request without legs is one leg. Phases of the request as a whole count in each leg. The leg that
 * ends last is as long as the request.
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

/** The phases that the request has waited for: all but those in the background. */
export const waitsIn = <W extends Wait>(phases: readonly W[]): readonly W[] =>
  phases.some(({ leg }) => leg === BACKGROUND) ? phases.filter(({ leg }) => leg !== BACKGROUND) : phases;

/** For how many milliseconds the request waited for nothing. */
export const ownMsOf = (waits: readonly Wait[], from: number, until: number): number =>
  sumsOf(waits, from, until).get('own') ?? 0;

/** How long each phase lasted, in milliseconds. */
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
