import { GatewayError } from '../core/errors.ts';
import { type Legs, vitalOf } from '../gateway/compose.ts';
import { isBad, isGood, type Leg } from '../gateway/leg.ts';
import { leftCode } from '../middleware/access-log.ts';
import { type Answer, NO_STORE, timingOf } from '../middleware/reply.ts';
import type { ClientRequest } from '../middleware/request.ts';
import { errorOf, type Form, isKnown, knownIn, linesHeaders, noteLeg, partOf, tagOf } from './overview-answer.ts';

/**
 * One line per section as soon as it is read, and `{"complete":true}` at the end, with the ETag where the whole may be kept.
 * Begins when all required sections are read, so that their failure can still be a problem with its status. After that a
 * refusal cuts the stream short.
 */
export async function linesAnswer(request: ClientRequest, form: Form, legs: Legs): Promise<Answer> {
  const { asked, changesOnly } = form;
  const first = await Promise.all(vitalOf(asked).map(async (name) => [name, await legs.get(name)] as const));
  const timing = first.map(([name, leg]) => timingOf(name, leg?.ms ?? 0, leg?.state)).join(', ');
  request.cache = 'stream';
  request.isStream = true;
  const known = changesOnly ? knownIn(request.header('if-none-match'), asked) : undefined;
  const type = { 'Content-Type': 'application/x-ndjson', 'X-Accel-Buffering': 'no' };
  return {
    status: 200,
    headers: { ...linesHeaders(asked, known), ...NO_STORE, ...type },
    body: streamOf(request, form, { legs, known }),
    ...(timing && { timing }),
  };
}

interface Lines {
  readonly legs: Legs;
  /** What the client has of each section. */
  readonly known: readonly string[] | undefined;
}

/** A line is made when the client has taken those before it: what it has not read is the listener's to count. */
function streamOf(request: ClientRequest, form: Form, { legs, known }: Lines): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const { wanted } = form.asked;
  const done: Leg[] = [];
  let cut: string | undefined;
  const left = new Map(wanted.map((name, at) => [at, arrived(at, partNamed(form, legs, name))]));
  return new ReadableStream({
    async pull(controller) {
      const send = (line: string) => controller.enqueue(encoder.encode(`${line}\n`));
      for (let isSent = false; !isSent && left.size > 0;) {
        const { at, leg, error } = await Promise.race(left.values());
        left.delete(at);
        if (request.hasLeft) return endCut(request, leftCode(request)); // nobody reads it any more
        isSent = leg !== undefined;
        if (!leg) {
          cut ??= codeOf(error);
          continue;
        }
        done[at] = leg;
        send(lineOf(request, { name: wanted[at] ?? '', leg, known: known?.[at] }));
      }
      if (left.size > 0) return;
      if (cut !== undefined) endCut(request, cut);
      else {
        request.end();
        send(lastLine(request, done));
      }
      controller.close();
    },
    cancel: () => endCut(request, leftCode(request)),
  });
}

/** A section that is read, or why it is not. */
const arrived = (at: number, leg: Promise<Leg>) =>
  leg.then(
    (it) => ({ at, leg: it, error: undefined }),
    (error: unknown) => ({ at, leg: undefined, error }),
  );

async function partNamed(form: Form, legs: Legs, name: string): Promise<Leg> {
  const leg = await legs.get(name);
  if (!leg) throw new Error(`${name} was not composed`);
  return partOf(form, name, leg);
}

function lastLine({ wants }: ClientRequest, legs: readonly Leg[]): string {
  const isKept = wants !== 'no-store' && legs.every((leg) => (isGood(leg) ? leg.isCacheable : !isBad(leg)));
  const etag = isKept ? `"${legs.map(tagOf).join('.')}"` : undefined;
  return JSON.stringify({ complete: true, etag });
}

const codeOf = (error: unknown) => (error instanceof GatewayError ? error.code : 'internal_error');

/** The status has been sent: the line in the log has the code of what cut the stream short. */
function endCut(request: ClientRequest, code: string): void {
  if (!request.isEnded) request.code = code;
  request.end();
}

interface Line {
  readonly name: string;
  readonly leg: Leg;
  readonly known: string | undefined;
}

function lineOf(request: ClientRequest, { name, leg, known }: Line): string {
  noteLeg(request, name, leg);
  const code = isGood(leg) && leg.code !== undefined ? `,"code":${JSON.stringify(leg.code)}` : '';
  const head = `{"section":${JSON.stringify(name)},"state":"${leg.state}"${code}`;
  if (isBad(leg)) return `${head},"error":${JSON.stringify(errorOf(request, name, leg))}}`;
  if (isKnown(leg, known)) return `${head},"unchanged":true}`;
  return `${head},"data":${isGood(leg) ? leg.text.replaceAll(/[\r\n]+\s*/g, ' ') : 'null'}}`;
}
