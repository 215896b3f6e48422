import type { Recorded } from '../../../core/recorder.ts';
import { legsOf, type Phase, waitsIn } from '../../../core/timeline.ts';

/** Characters of a name, and phases of one request: a batch may have hundreds. */
const MOST_CHARACTERS = 128;
const MOST_PHASES = 150;
const MOST_NAMES = 40;

const cut = (text: string) => (text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text);
const named = (names: readonly string[] | undefined) => names?.slice(0, MOST_NAMES).map(cut);
const tenths = (ms: number) => Math.round(ms * 10) / 10;

/** `status`: absent while the request is under way. Then `endedAt` is now. */
interface Seen {
  readonly status?: number;
  readonly endedAt: number;
}

/** A request as the page has it: plain data. Times in milliseconds, of phases from the begin of the request. */
export function factsOf(request: Recorded, { status, endedAt }: Seen) {
  const { requestId, method, route, startedAt, account, cache, code, reason, fresh, failed, stale } = request;
  const { operation = route.name } = route;
  const phases = waitsIn(request.phases ?? []);
  return {
    id: cut(requestId),
    at: Math.round(startedAt),
    ms: tenths(endedAt - startedAt),
    status,
    method,
    operation: cut(operation),
    account,
    cache,
    code: code && cut(code),
    reason,
    fresh: named(fresh),
    failed: named(failed),
    stale: named(stale),
    legs: legsOf(phases, { name: operation, startedAt, endedAt }).slice(0, MOST_NAMES).map(legFacts),
    phases: phases.slice(0, MOST_PHASES).map((phase) => phaseFacts(phase, { startedAt, endedAt })),
    /** Phases that are left out. */
    more: Math.max(0, phases.length - MOST_PHASES),
  };
}

const legFacts = ({ name, ms, phases, reason }: ReturnType<typeof legsOf>[number]) => ({
  leg: cut(name),
  ms: tenths(ms),
  sums: Object.fromEntries(Array.from(phases, ([phase, sum]) => [phase, tenths(sum)] as const)),
  reason,
});

interface Span {
  readonly startedAt: number;
  readonly endedAt: number;
}

const phaseFacts = (
  { phase, leg, start, end, status, outcome, reason, joined, fact }: Phase,
  { startedAt, endedAt }: Span,
) => ({
  phase,
  leg: leg && cut(leg),
  at: tenths(start - startedAt),
  ms: tenths((end ?? endedAt) - start),
  /** It goes on. */
  open: end === undefined || undefined,
  outcome,
  status,
  reason,
  joined: joined && cut(joined.requestId),
  fact,
});
