import type { OwnCalling, Portico } from './client.ts';
import { type Copy, correctAges, etagToKeep, ifChanged, type SectionState } from './copies.ts';
import type { PorticoProblem } from './wire.ts';
import { type Answered, type Begun, type Globals, pause, PAUSE_MS, reasonOf, type Target } from './send.ts';
import type { CallOptions, OverviewId, OverviewInput, OverviewOf, PlainOverviewId } from './types.ts';

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
type Values<Name, Asked = object> = AsyncGenerator<OverviewOf<IdOf<Name>, Asked>, void, undefined>;

/** Beside what is wanted of the overview. */
export interface WatchOptions<Id extends OverviewId> extends Omit<CallOptions, 'fresh' | 'idempotencyKey'> {
  /** How many entries a section has that is a page. */
  readonly pageSize?: OverviewInput<Id>['page_size'];
  /** Hears of each pause before another try. Unless given, that of the client does. */
  readonly onRetry?: Target['onRetry'];
}

/**
 * An overview as it changes: its first value at once, and each that comes after it. Begins with what the client's copies have
 * of it, as stale. Waits at the gateway for changes, and gets the sections that have changed; asks now and then where nobody
 * can wait. Ends with its signal, `return()`, or a problem that will not pass. Sections that have not changed are the same
 * objects as before: leave them as they are.
 */
export function watchOverview<
  const Name extends NameOf<OverviewId>,
  const Asked extends OverviewInput<IdOf<Name>> & WatchOptions<IdOf<Name>>,
>(portico: Portico, name: Name, options: Asked): Values<Name, Asked>;
export function watchOverview<const Name extends NameOf<PlainOverviewId>>(
  ...given: [portico: Portico, name: Name, options?: undefined]
): Values<Name>;
export function watchOverview(portico: Portico, name: string, options: WatchOptions<OverviewId> = {}) {
  const { globals, routes } = portico;
  const { signal } = options;
  const id = name in routes ? name : `get${name.replace(/(?:^|-)(.)/g, (_, first: string) => first.toUpperCase())}`;
  let turn = new AbortController();
  const over = new AbortController();
  const interrupt = () => turn.abort();
  const ask = createAsking(portico, id as OverviewId, options, interrupt);
  const heard = [
    [signal, 'abort'],
    [globals.document, 'visibilitychange'],
    [globals, 'online'],
  ] as const;
  async function* watch() {
    while (!over.signal.aborted) {
      if (signal?.aborted) throw reasonOf(signal);
      turn = new AbortController();
      for (const [target, type] of heard) target?.addEventListener?.(type, interrupt);
      const value = await ask(turn.signal)
        .catch((error: unknown) => {
          if (signal?.aborted) throw reasonOf(signal, error);
          if (!turn.signal.aborted) throw error;
        })
        .finally(() => heard.forEach(([target, type]) => target?.removeEventListener?.(type, interrupt)));
      if (value && !over.signal.aborted) yield value;
    }
  }
  const values = watch();
  const end = values.return.bind(values);
  values.return = () => {
    over.abort(); // else it would go on until there is another value
    interrupt();
    return end();
  };
  return values;
}

/** How long a request waits at the gateway, and the time to the next one where nobody can wait, or the network is gone. */
const HALF_MINUTE = 30_000;
/** From one request to the next while the page is hidden. */
const SLOW_MS = 300_000;

const isHidden = ({ document }: Globals) => document?.visibilityState === 'hidden';

/** Asks for one overview again and again, when it is time, for what has changed since. Resolves with all of it if there is news. */
function createAsking(portico: Portico, id: OverviewId, options: WatchOptions<OverviewId>, giveUp: () => void) {
  const { headers, query, strict, pageSize, onRetry, signal: _, ...input } = options;
  const call = portico[id] as unknown as (input: object, options: OwnCalling) => Promise<Overview | undefined>;
  const { globals, parse } = portico;
  const caller = {}; // of the first request
  let [copy, last, etag, timer]: [Copy?, Overview?, (string | null)?, unknown?] = [];
  let [atMs, triedMs, gapMs, trust] = [0, 0, 0, 1]; // trust below 0: so many requests will not wait
  let [isKept, isWaiting, hasFailed] = [false, false, false];

  const fail = () => {
    hasFailed = true;
    if (isWaiting && --trust < 0) trust = -30; // two waits in a row were cut off
    isWaiting = false;
  };
  const begin = (found: Copy): Begun => {
    const kept = copy ? undefined : found.kept;
    copy = found;
    triedMs = globals.Date.now();
    if (kept) {
      ({ etag, atMs } = kept);
      last = parse(kept.text) as Overview;
      isKept = hasFailed = true; // the gateway is asked at once, and its answer is a value whatever it is
      return [undefined, [aged(last, triedMs - atMs)]];
    }
    timer = globals.setTimeout(() => [fail(), giveUp()], 45_000); // a phone that has changed networks may never hear of it
    isWaiting = !!etag && trust >= 0 && !hasFailed && !isHidden(globals);
    if (trust < 0) trust += 1;
    const prefer = [strict && 'handling=strict', etag && 'changed-sections', isWaiting && 'wait=30'].filter(Boolean);
    return [{ ...(etag && ifChanged(etag)), ...(prefer[0] && { prefer: prefer.join(', ') }) }];
  };
  const read = async (response: Response): Promise<Answered> => {
    const answer = response.status === 304 ? undefined : (parse(await response.text()) as Overview);
    const unchanged = answer?.meta.unchanged;
    const nowMs = globals.Date.now();
    if (answer) etag = response.headers.get('ETag');
    if (answer && !unchanged) isKept = !!etagToKeep(response);
    const mayWait = isWaiting ? unchanged || nowMs - triedMs > HALF_MINUTE / 2 || saysWait(response) : trust >= 0;
    gapMs = etag && mayWait ? 1000 : HALF_MINUTE;
    if (isWaiting) trust = 1;
    const isNews = answer || hasFailed || isOld(last);
    hasFailed = false;
    last = answer ? merged(answer, last) : last && aged(last, nowMs - atMs, response);
    atMs = nowMs;
    if (isKept && etag) keep(copy, etag, last);
    return [isNews && last];
  };
  const waitOf = (problem: PorticoProblem, tries: number) => {
    globals.clearTimeout(timer);
    fail();
    gapMs = Math.min((problem.retryAfter ?? 0) * 1000, 3_600_000);
    return problem.retryable || problem.status >= 500 ? Math.max(gapMs, pauseMs(tries, globals)) : undefined;
  };
  const trying: OwnCalling['trying'] = (copyFor) => [async (who) => begin(await copyFor(who)), read];
  return async (signal: AbortSignal): Promise<Overview | undefined> => {
    const wantedMs = isHidden(globals) ? Math.max(gapMs, SLOW_MS) : gapMs;
    const leftMs = Math.min(wantedMs, triedMs + wantedMs - globals.Date.now()); // the clock may have been set
    if (leftMs > 0) await pause(globals, leftMs, signal);
    const calling: OwnCalling = { headers, query, caller, trying, waitOf, onRetry, signal };
    return call({ page_size: pageSize, ...input }, calling).finally(() => globals.clearTimeout(timer));
  };
}

/** Until another try after so many. */
function pauseMs(tries: number, globals: Globals): number {
  if (isHidden(globals)) return SLOW_MS;
  if (globals.navigator?.onLine === false) return HALF_MINUTE;
  return Math.min(20_000, PAUSE_MS * 2 ** tries) * (0.5 + globals.Math.random());
}

/** Keeps nothing where a `parse` of one's own has made what JSON has not, such as a BigInt. */
function keep(copy: Copy | undefined, etag: string, value: unknown): void {
  try {
    copy?.keep?.(etag, JSON.stringify(value));
  } catch {}
}

/** A page of another origin may not see it. */
const saysWait = ({ headers }: Response) => /wait/.test(headers.get('Preference-Applied') ?? '');

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
