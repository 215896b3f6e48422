import type { Portico } from './client.ts';
import { problemWithout } from './problem.ts';
import { wireOf } from './request.ts';
import { reasonOf } from './send.ts';
import type { OverviewId, OverviewInput, SectionLine, Takes } from './types.ts';

/**
 * The sections of an overview as they come. One that failed has `error` in place of `data`. Throws where the answer was
 * cut off. It does not begin again by itself once it has begun.
 */
export async function* streamOverview<Id extends OverviewId, const Asked extends OverviewInput<Id> = never>(
  portico: Portico,
  id: Id,
  ...[input, options]: Takes<Id, Asked>
): AsyncGenerator<SectionLine<Id, Asked>, void, undefined> {
  const asked = portico.response as (id: OverviewId, ...given: unknown[]) => Promise<Response>;
  const headers = { accept: 'application/x-ndjson', ...options?.headers };
  const response = await asked(id, input, { ...options, headers });
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
    if (options?.signal?.aborted) throw reasonOf(options.signal, error);
    cause = error;
  }
  if (!isWhole) throw problemWithout('connection_failed', wireOf(portico.routes[id], input), cause);
}

/** As they arrive; all at once where `fetch` has no stream (React Native). Looks at what is new only: a long line comes in many pieces. */
async function* linesOf(response: Response): AsyncGenerator<string, void, undefined> {
  const reader = response.body?.getReader?.();
  if (!reader) yield* (await response.text()).split('\n').slice(0, -1);
  if (!reader) return;
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = decoder.decode(value, { stream: true }).split('\n');
      lines[0] = rest + lines[0];
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    void reader.cancel().catch(() => undefined); // whoever reads no further wants no more of it
  }
}
