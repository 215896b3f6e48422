import type { Portico } from './client.ts';
import { problemWithout, reasonOf } from './send.ts';
import { wireOf } from './request.ts';
import type { CallOptions, OverviewId, OverviewInput, PlainOverviewId, SectionLine, Selection } from './types.ts';

const LINES = { accept: 'application/x-ndjson' };

/**
 * The sections of an overview as they come. One that failed has `error` in place of `data`. Throws where the answer was
 * cut off. It does not begin again by itself once it has begun.
 */
export function streamOverview<Id extends PlainOverviewId, const Asked extends Selection<Id> = object>(
  portico: Portico,
  id: Id,
  input?: Asked,
  options?: CallOptions,
): AsyncGenerator<SectionLine<Id, Asked>, void, undefined>;
export function streamOverview<Id extends OverviewId, const Asked extends OverviewInput<Id>>(
  portico: Portico,
  id: Id,
  input: Asked,
  options?: CallOptions,
): AsyncGenerator<SectionLine<Id, Asked>, void, undefined>;
export async function* streamOverview<Id extends OverviewId, Asked>(
  portico: Portico,
  id: Id,
  input?: object,
  options: CallOptions = {},
): AsyncGenerator<SectionLine<Id, Asked>, void, undefined> {
  const cutOff = (cause: unknown) => problemWithout('connection_failed', wireOf(portico.routes[id], input), cause);
  const asked = portico.response as (id: OverviewId, input?: object, options?: CallOptions) => Promise<Response>;
  const response = await asked(id, input, { ...options, headers: { ...LINES, ...options.headers } });
  try {
    for await (const text of linesOf(response)) {
      const line = portico.parse(text) as SectionLine<Id, Asked> | { readonly complete: true };
      if ('complete' in line) return;
      yield line;
    }
  } catch (error) {
    if (options.signal?.aborted) throw reasonOf(options.signal, error);
    throw cutOff(error);
  }
  throw cutOff('no last line');
}

/** Line by line as they arrive; all at once where `fetch` has no stream (React Native). */
async function* linesOf(response: Response): AsyncGenerator<string, void, undefined> {
  const reader = response.body?.getReader?.();
  if (!reader) {
    yield* fullLines('', await response.text()).lines;
    return;
  }
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const read = fullLines(rest, decoder.decode(value, { stream: !done }));
      yield* read.lines;
      if (done) return;
      rest = read.rest;
    }
  } finally {
    void reader.cancel().catch(() => undefined); // whoever reads no further wants no more of it
  }
}

/** Looks at what is new only: a long line comes in many pieces. */
function fullLines(before: string, text: string): { readonly lines: readonly string[]; readonly rest: string } {
  const lines = text.split('\n');
  lines[0] = before + lines[0];
  const rest = lines.pop() ?? '';
  return { lines: lines.filter(Boolean), rest };
}
