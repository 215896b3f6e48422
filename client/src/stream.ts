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
  const asked = portico.response as (id: OverviewId, input?: object, options?: CallOptions) => Promise<Response>;
  const response = await asked(id, input, { ...options, headers: { ...LINES, ...options.headers } });
  let isWhole = false;
  let cause: unknown = 'no last line';
  try {
    for await (const text of linesOf(response)) {
      if (isWhole || !text) continue; // to the end of the body: the connection serves the next call too
      const line = portico.parse(text) as SectionLine<Id, Asked> | { readonly complete: true };
      if ('complete' in line) isWhole = true;
      else yield line;
    }
  } catch (error) {
    if (options.signal?.aborted) throw reasonOf(options.signal, error);
    cause = error;
  }
  if (!isWhole) throw problemWithout('connection_failed', wireOf(portico.routes[id], input), cause);
}

/** Looks at what is new only: a long line comes in many pieces. */
async function* linesOf(response: Response): AsyncGenerator<string, void, undefined> {
  let rest = '';
  for await (const text of piecesOf(response)) {
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

/** As they arrive; all at once where `fetch` has no stream (React Native). */
async function* piecesOf(response: Response): AsyncGenerator<string, void, undefined> {
  const reader = response.body?.getReader?.();
  if (!reader) {
    yield await response.text();
    return;
  }
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    void reader.cancel().catch(() => undefined); // whoever reads no further wants no more of it
  }
}
