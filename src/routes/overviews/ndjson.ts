import { type Legs, vitalOf } from '../../gateway/compose.ts';
import { isBad, type Leg } from '../../gateway/legs.ts';
import { type Answer, NO_STORE, timingOf } from '../../middleware/reply.ts';
import type { ClientRequest } from '../../middleware/request.ts';
import { ClientLeft } from '../../core/errors.ts';
import { type CompositionRequest, errorOf, sectionText } from './composition.ts';

interface Streaming {
  readonly legs: Legs;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * One line per section as soon as it is read, and `{"complete":true}` at the end. Begins when all required sections are
 * read, so that their failure can still be a problem with its status. After that a refusal cuts the stream short.
 */
export async function ndjsonAnswer(
  request: ClientRequest,
  asked: CompositionRequest,
  { legs, headers }: Streaming,
): Promise<Answer> {
  const first = await Promise.all(vitalOf(asked).map(async (name) => [name, await legs.get(name)] as const));
  const timing = first.map(([name, leg]) => timingOf(name, leg?.ms ?? 0, leg?.state)).join(', ');
  request.cache = 'stream';
  request.isStream = true;
  return {
    status: 200,
    headers: { ...headers, ...NO_STORE, 'Content-Type': 'application/x-ndjson', 'X-Accel-Buffering': 'no' },
    body: streamOf(request, asked, legs),
    ...(timing && { timing }),
  };
}

function streamOf(request: ClientRequest, asked: CompositionRequest, legs: Legs): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async start(controller) {
      const send = (line: string) => controller.enqueue(encoder.encode(`${line}\n`));
      const lines = asked.wanted.map(async (name) => send(lineOf(asked, name, await legs.get(name))));
      const outcomes = await Promise.allSettled(lines);
      request.end();
      if (request.signal.reason instanceof ClientLeft) return; // the client does not read any more
      if (outcomes.every(({ status }) => status === 'fulfilled')) send('{"complete":true}');
      controller.close();
    },
    cancel() {
      request.end();
    },
  });
}

function lineOf(request: CompositionRequest, name: string, leg: Leg | undefined): string {
  if (!leg) throw new Error(`${name} was not composed`);
  const head = `{"section":${JSON.stringify(name)},"state":"${leg.state}"`;
  if (isBad(leg)) return `${head},"error":${JSON.stringify(errorOf(leg))}}`;
  return `${head},"data":${sectionText(request, name, leg).replaceAll(/[\r\n]+\s*/g, ' ')}}`;
}
