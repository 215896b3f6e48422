import { correctAges, type SectionState } from './ages.ts';
import type { Portico } from './client.ts';
import { createPace, WAIT_SECONDS } from './pace.ts';
import type { Answered, Calling, Retry } from './send.ts';
import type { CallOptions, OverviewId } from './types.ts';

/** An overview as the gateway sends it. */
export interface Answer {
  readonly data: Readonly<Record<string, unknown>>;
  readonly errors: readonly object[];
  readonly meta: {
    readonly complete: boolean;
    readonly sections: Readonly<Record<string, SectionState>>;
    /** Sections that are left out of `data`. Only where some may be. */
    readonly unchanged?: readonly string[];
  };
}

export interface Asked extends CallOptions {
  readonly pageSize?: object | undefined;
  readonly onRetry?: ((retry: Retry) => void) | undefined;
}

/** A try that has no answer by then is given up: a phone that has changed networks may never hear of it. */
const TRY_MS = 45_000;

/**
 * Asks for one overview again and again, when it is time, for what has changed since. Resolves with all of it if there is news.
 * `giveUp` ends the request that is under way.
 */
export function createAsking(portico: Portico, id: OverviewId, options: Asked, giveUp: () => void) {
  const { signal: _, headers, query, strict, pageSize, onRetry, ...input } = options;
  const call = portico[id] as unknown as (input: object, options: Calling) => Promise<Answer | undefined>;
  const { globals } = portico;
  const pace = createPace(globals);
  let etag: string | null = null;
  let last: Answer | undefined;
  let atMs = 0;
  let timer: unknown;

  const conditions = async () => {
    timer = globals.setTimeout(() => {
      pace.fail();
      giveUp();
    }, TRY_MS);
    const isWaiting = pace.begin(etag !== null);
    const wishes = [strict && 'handling=strict', etag && 'changed-sections', isWaiting && `wait=${WAIT_SECONDS}`];
    const prefer = wishes.filter(Boolean).join(', ');
    // With an ETag but without `max-age=0`, fetch asks for a fresh copy: it adds `no-cache`.
    return { ...(etag && { 'if-none-match': etag, 'cache-control': 'max-age=0' }), ...(prefer && { prefer }) };
  };

  const read = async (response: Response): Promise<Answered> => {
    const answer = response.status === 304 ? undefined : (portico.parse(await response.text()) as Answer);
    if (answer) etag = response.headers.get('ETag');
    const isBack = pace.hear(response, etag !== null, !!answer?.meta.unchanged);
    const isNews = answer || isBack || isOld(last);
    const nowMs = globals.Date.now();
    last = answer ? merged(answer, last) : last && confirmed(last, nowMs - atMs, response);
    atMs = nowMs;
    return { value: isNews && last };
  };

  const calling: Calling = {
    headers,
    query,
    caller: {}, // of the first request
    trying: { conditions, read },
    waitOf(problem, tries) {
      globals.clearTimeout(timer);
      return pace.after(problem, tries);
    },
    onRetry,
  };

  return async (signal: AbortSignal): Promise<Answer | undefined> => {
    await pace.rest(signal);
    return call({ page_size: pageSize, ...input }, { ...calling, signal }).finally(() => globals.clearTimeout(timer));
  };
}

/** How old it is may be on the screen. */
const isOld = (answer?: Answer) => Object.values(answer?.meta.sections ?? {}).some(({ state }) => state === 'stale');

function merged({ data, meta: { unchanged, ...meta }, ...answer }: Answer, last: Answer | undefined): Answer {
  return { ...answer, data: { ...(unchanged && last?.data), ...data }, meta };
}

function confirmed({ meta, ...last }: Answer, passedMs: number, response: Response): Answer {
  const sections = Object.fromEntries(Object.entries(meta.sections).map(([name, section]) => [name, { ...section }]));
  correctAges(sections, passedMs, response);
  return { ...last, meta: { ...meta, sections } };
}
