import { type Answer, type Retry, type SectionLine, streamOverview, watchOverview } from 'portico-client';
import { portico } from './portico.ts';
import { type Trouble, troubleOf } from './problem.ts';
import { type Change, NAMES, type SectionName, type SectionState } from './sections.ts';

interface Reading {
  readonly change: Change;
  readonly signal: AbortSignal;
}

interface Lines extends Reading {
  /** All, unless given. */
  readonly names?: readonly SectionName[];
  readonly fresh?: boolean;
}

interface Watching extends Reading {
  /** What has just failed, and so is not tried again at once. */
  readonly trouble?: Trouble | undefined;
  /** Hears of each answer, and of what came in place of one. */
  readonly onNews?: () => void;
}

type State = SectionState<unknown>;
type Overview = Answer<'getAccountOverview'>;

/** What an overview says of a section; `code` is why a stale one is not newer. */
interface Meta {
  readonly state: string;
  readonly age?: number;
  readonly code?: string;
}

/** Until the next try, where a problem does not say how long. */
const PAUSE_S = 5;

/** Section by section, as they come. Resolves with what went wrong with the whole. */
export async function readLines({ names, change, fresh = false, signal }: Lines): Promise<Trouble | undefined> {
  const startedAt = performance.now();
  const requestId = crypto.randomUUID(); // ours, so that it is known for each section that fails
  const options = { fresh, signal, headers: { 'X-Request-Id': requestId } };
  const missing = new Set(names ?? NAMES);
  try {
    for await (const line of streamOverview(portico, 'getAccountOverview', { sections: names }, options)) {
      missing.delete(line.section);
      const afterMs = performance.now() - startedAt;
      change(line.section, () => ({ ...stateOf(line, requestId), afterMs }));
    }
    return undefined;
  } catch (error) {
    return signal.aborted ? undefined : failed(change, [...missing], error);
  }
}

function failed(change: Change, names: readonly SectionName[], error: unknown): Trouble {
  const trouble = troubleOf(error);
  for (const name of names) change(name, (before) => ({ ...before, isWaiting: false, trouble }));
  return trouble;
}

/**
 * As they change, until it is aborted or fails for good. While a try fails what is shown is dimmed; the first good answer after that
 * says that all is well, even where nothing has changed.
 */
export async function watch({ change, signal, trouble, onNews }: Watching): Promise<void> {
  const fail = (error: unknown) => {
    failed(change, NAMES, error);
    onNews?.();
  };
  const onRetry = ({ problem }: Retry) => fail(problem);
  if (trouble) await new Promise((resolve) => setTimeout(resolve, 1_000 * (trouble.retryAfter ?? PAUSE_S)));
  try {
    for await (const overview of watchOverview(portico, 'account-overview', { signal, onRetry })) {
      for (const name of NAMES) change(name, (before) => partOf(overview, name, before));
      onNews?.();
    }
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}

function stateOf(line: SectionLine<'getAccountOverview'>, requestId: string): State {
  if (!('error' in line)) return { isWaiting: false, data: line.data, at: Date.now() };
  const { code, detail, retry_after: retryAfter } = line.error;
  return { isWaiting: false, trouble: { code, detail, requestId, retryAfter } };
}

/** A section that failed keeps what the page had of it. */
function partOf({ data, errors, meta }: Overview, name: SectionName, before: State): State {
  const { state, age = 0, code }: Meta = meta.sections[name];
  const error = errors.find(({ section }) => section === name);
  const troubleFor = (why: string) =>
    before.trouble?.code === why ? before.trouble : { code: why, detail: error?.detail ?? '', requestId: '' };
  if (state === 'failed' || state === 'skipped')
    return { ...before, isWaiting: false, trouble: troubleFor(error?.code ?? state) };
  const trouble = code === undefined ? undefined : troubleFor(code);
  return { ...before, isWaiting: false, data: data[name], at: Date.now() - age * 1000, trouble };
}
