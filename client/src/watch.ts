import type { Portico } from './client.ts';
import { type Copy, correctAges, etagToKeep, ifChanged, type SectionState } from './copies.ts';
import type { PorticoProblem } from './wire.ts';
import { type Calling, pause, PAUSE_MS, reasonOf, type Target, unlessAborted } from './send.ts';
import type { CallOptions, OverviewId, OverviewInput, OverviewOf } from './types.ts';

/** An overview as the gateway sends it. `unchanged` names sections that are left out of `data`. */
interface Overview {
  readonly data: Readonly<Record<string, unknown>>;
  readonly meta: { readonly sections: Readonly<Record<string, SectionState>>; readonly unchanged?: readonly string[] };
}

/** `getAccountOverview`, or `account-overview`. */
type NameOf<Id> = Id | (Id extends `get${infer Words}` ? Dashed<Uncapitalize<Words>> : never);
type Dashed<Words> = Words extends `${infer One}${infer Rest}`
  ? `${One extends Lowercase<One> ? One : `-${Lowercase<One>}`}${Dashed<Rest>}`
  : '';
type IdOf<Name> = { [Id in OverviewId]: Name extends NameOf<Id> ? Id : never }[OverviewId];
type Options<Name> = OverviewInput<IdOf<Name>> & WatchOptions;
type Takes<Name> = object extends Options<Name> ? [options?: Options<Name>] : [options: Options<Name>];

/** Beside what is wanted of the overview. `onRetry` takes the place of that of the client. */
export type WatchOptions = Omit<CallOptions, 'fresh' | 'idempotencyKey'> & Pick<Target, 'onRetry'>;

/**
 * An overview as it changes: its first value at once, and each that comes after it. Begins with what the client's copies have
 * of it, as stale. Waits at the gateway for changes, and gets the sections that have changed; asks now and then where nobody
 * can wait. Ends with its signal, with `break`, or with a problem that will not pass. Sections that have not changed are the same
 * objects as before: leave them as they are.
 */
export function watchOverview<const Name extends NameOf<OverviewId>, const Given extends Readonly<Takes<Name>>>(
  portico: Portico,
  name: Name,
  ...given: Given
): AsyncGenerator<OverviewOf<IdOf<Name>, Given[0]>, void, undefined>;
export async function* watchOverview(portico: Portico, name: string, options: WatchOptions = {}) {
  const { signal } = options;
  const id = name in portico.routes ? name : `get-${name}`.replace(/-(.)/g, (_, first: string) => first.toUpperCase());
  let turn = new AbortController();
  const interrupt = () => turn.abort();
  const ask = createAsking(portico, id as OverviewId, options, interrupt);
  const heard = [
    [signal, 'abort'],
    [page.document, 'visibilitychange'],
    [page, 'online'],
  ] as const;
  for (;;) {
    if (signal?.aborted) throw reasonOf(signal);
    turn = new AbortController();
    for (const [target, type] of heard) target?.addEventListener?.(type, interrupt);
    const value = await ask(turn.signal)
      .catch((error: unknown) => {
        if (signal?.aborted) throw reasonOf(signal, error);
        if (!turn.signal.aborted) throw error;
      })
      .finally(() => heard.forEach(([target, type]) => target?.removeEventListener?.(type, interrupt)));
    if (value) yield value;
  }
}

/** What a page has, and other runtimes have not. */
const page = globalThis as Partial<EventTarget> & {
  readonly document?: EventTarget & { readonly visibilityState: string };
};

/** From one request to the next where nobody can wait at the gateway. */
const HALF_MINUTE = 30_000;

/** Asks for one overview again and again, when it is time, for what has changed since. Resolves with all of it if there is news. */
function createAsking(portico: Portico, id: OverviewId, options: WatchOptions, giveUp: () => void) {
  const { headers, query, strict, onRetry, signal: _, ...input } = options;
  const call = portico[id] as unknown as (input: object, options: Calling) => Promise<Overview | undefined>;
  const { parse } = portico;
  const caller = {}; // of the first request
  let [copy, last, etag, timer]: [Copy?, Overview?, (string | null)?, ReturnType<typeof setTimeout>?] = [];
  let [atMs, triedMs, gapMs] = [0, 0, 0];
  let [isKept, isWaiting, wasCut, hasFailed] = [parse === JSON.parse, false, false, false];

  const begin = (found: Copy, { aborted }: AbortSignal) => {
    if (aborted) return {}; // nobody clears its timer
    const kept = copy ? undefined : found.kept;
    copy = found;
    triedMs = Date.now();
    if (kept) {
      ({ etag, atMs } = kept);
      last = parse(kept.text) as Overview;
      hasFailed = true; // the gateway is asked at once, and its answer is a value whatever it is
      return { value: aged(last, triedMs - atMs) };
    }
    timer = setTimeout(() => [(hasFailed = true), giveUp()], 45_000); // a phone with another network may never hear of it
    isWaiting = !!etag && !hasFailed;
    const prefer = [strict && 'handling=strict', etag && 'changed-sections', isWaiting && 'wait=30'].filter(Boolean);
    return { headers: { ...(etag && ifChanged(etag)), ...(prefer[0] && { prefer: prefer.join(', ') }) } };
  };
  const read = async (response: Response) => {
    const answer = response.status === 304 ? undefined : (parse(await response.text()) as Overview);
    const nowMs = Date.now();
    if (answer) etag = response.headers.get('ETag');
    // A `parse` of one's own makes what JSON has not, such as a BigInt. What has changed always says `no-store`.
    if (answer && !answer.meta.unchanged) isKept = parse === JSON.parse && !!etagToKeep(response);
    const mayWait = !isWaiting || /wait/.test(response.headers.get('Preference-Applied') ?? '');
    wasCut &&= !isWaiting; // else whatever cuts each wait off would be asked all the time
    gapMs = etag && mayWait && !wasCut ? 1000 : HALF_MINUTE;
    const isNews = answer || hasFailed || isOld(last);
    hasFailed = false;
    last = answer ? merged(answer, last) : last && aged(last, nowMs - atMs, response);
    atMs = nowMs;
    if (isKept && etag) copy?.keep?.(etag, JSON.stringify(last));
    return isNews && last;
  };
  const waitOf = (problem: PorticoProblem, tries: number) => {
    clearTimeout(timer);
    hasFailed = true;
    wasCut ||= isWaiting;
    gapMs = Math.min((problem.retryAfter ?? 0) * 1000, 3_600_000);
    const pauseMs = Math.min(20_000, PAUSE_MS * 2 ** tries) * (0.5 + Math.random());
    return problem.retryable || problem.status >= 500 ? Math.max(gapMs, pauseMs) : undefined;
  };
  return async (signal: AbortSignal): Promise<Overview | undefined> => {
    const isHidden = last && page.document?.visibilityState === 'hidden';
    if (isHidden) await unlessAborted(new Promise(() => undefined), signal); // until it is shown
    const leftMs = Math.min(gapMs, triedMs + gapMs - Date.now()); // the clock may have been set
    if (leftMs > 0) await pause(leftMs, signal);
    const trying: Calling['trying'] = (copyFor) => [async (who) => begin(await copyFor(who), signal), read];
    const calling: Calling = { headers, query, caller, trying, waitOf, onRetry, signal };
    return call(input, calling).finally(() => clearTimeout(timer));
  };
}

/** How old it is may be on the screen. */
const isOld = (overview?: Overview) =>
  Object.values(overview?.meta.sections ?? {}).some(({ state }) => state === 'stale');

function merged({ data, meta: { unchanged, ...meta }, ...answer }: Overview, last: Overview | undefined): Overview {
  return { ...answer, data: { ...(unchanged && last?.data), ...data }, meta };
}

function aged({ meta, ...last }: Overview, passedMs: number, response?: Response): Overview {
  const sections = Object.fromEntries(Object.entries(meta.sections).map(([name, section]) => [name, { ...section }]));
  correctAges(sections, passedMs, response);
  return { ...last, meta: { ...meta, sections } };
}
