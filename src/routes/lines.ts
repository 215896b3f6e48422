import { GatewayError } from '../core/errors.ts';
import type { MaybePromise } from '../core/runtime.ts';
import { allOf, composedNames, requiredSections, type SectionResult } from '../gateway/compose.ts';
import { leftCode } from '../http/access-log.ts';
import { type Answer, NO_STORE, timingOf } from '../http/reply.ts';
import type { HonoRequest } from '../http/request.ts';
import { errorOf, etagOf, type Form, formHeaders, isKnown, knownIn, note } from './overview-answer.ts';

/**
 * Answers an overview in lines: one per section as soon as it is read, and `{"complete":true}` at the end, with the ETag if the
 * client may keep the whole. The answer begins when all required sections are read, so that their failure can still be a
 * problem with its status. A later refusal cuts the stream short.
 */
export async function linesAnswer(
  request: HonoRequest,
  { composition, changesOnly }: Form,
  results: readonly MaybePromise<SectionResult>[],
): Promise<Answer> {
  const names = composedNames(composition);
  const resultsOf = (some: readonly string[]) => results.filter((_, at) => some.includes(names[at] ?? ''));
  const required = await allOf(resultsOf(requiredSections(composition)));
  const timing = required.map(({ name, ms, state }) => timingOf(name, ms, state)).join(', ');
  request.cache = 'stream';
  request.isStream = request.method !== 'HEAD'; // Hono drops the body of a HEAD, so nothing would end that stream
  const known = changesOnly ? knownIn(request.header('if-none-match'), composition) : undefined;
  const type = { 'Content-Type': 'application/x-ndjson', 'X-Accel-Buffering': 'no' };
  return {
    status: 200,
    headers: { ...formHeaders(composition, known), ...NO_STORE, ...type },
    body: streamOf(request, { wanted: resultsOf(composition.wanted), known }),
    ...(timing && { timing }),
  };
}

interface Lines {
  readonly wanted: readonly MaybePromise<SectionResult>[];
  /** See `knownIn`. */
  readonly known: readonly string[] | undefined;
}

/** Makes a line only when the client has taken those before it. The listener counts what the client has not read. */
function streamOf(request: HonoRequest, { wanted, known }: Lines): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const done: SectionResult[] = [];
  let cut: string | undefined;
  const left = new Map(wanted.map((result, at) => [at, arrived(at, result)]));
  return new ReadableStream({
    async pull(controller) {
      const send = (line: string) => controller.enqueue(encoder.encode(`${line.replaceAll(LINE_ENDS, escaped)}\n`));
      for (let isSent = false; !isSent && left.size > 0;) {
        const { at, result, error } = await Promise.race(left.values());
        left.delete(at);
        if (request.hasLeft) return endCut(request, leftCode(request)); // nobody reads it any more
        isSent = result !== undefined;
        if (!result) {
          cut ??= error instanceof GatewayError ? error.code : 'internal_error';
          continue;
        }
        done[at] = result;
        send(lineOf(request, result, known?.[at]));
      }
      if (left.size > 0) return;
      if (cut !== undefined) endCut(request, cut);
      else {
        request.end();
        send(JSON.stringify({ complete: true, etag: etagOf(request, done) }));
      }
      controller.close();
    },
    cancel: () => endCut(request, leftCode(request)),
  });
}

/** Characters that end a line for some readers. In JSON they stand in texts only. */
const LINE_ENDS = /[\u0085\u2028\u2029]/g;
const escaped = (end: string) => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** A section's result, or the error that fails the whole. */
const arrived = (at: number, result: MaybePromise<SectionResult>) =>
  Promise.resolve(result).then(
    (done) => ({ at, result: done, error: undefined }),
    (error: unknown) => ({ at, result: undefined, error }),
  );

/** Ends a stream that is cut short. Its status has been sent, so only the log has the code. */
function endCut(request: HonoRequest, code: string): void {
  if (!request.isEnded) request.code = code;
  request.end();
}

function lineOf(request: HonoRequest, result: SectionResult, known: string | undefined): string {
  const { name, state, code, error, text = 'null' } = result;
  note(request, result);
  const why = code === undefined ? '' : `,"code":${JSON.stringify(code)}`;
  const head = `{"section":${JSON.stringify(name)},"state":"${state}"${why}`;
  if (error) return `${head},"error":${JSON.stringify(errorOf(request, name, error))}}`;
  if (isKnown(result, known)) return `${head},"unchanged":true}`;
  return `${head},"data":${text.replaceAll(/[\r\n]+\s*/g, ' ')}}`;
}
