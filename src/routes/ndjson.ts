import { type Legs, vitalOf } from '../gateway/compose.ts';
import { isBad, type Leg } from '../gateway/overview.ts';
import { type Answer, NO_STORE } from '../http/answer.ts';
import type { Exchange } from '../http/exchange.ts';
import { timingOf } from '../http/reading-answer.ts';
import { ClientLeft } from '../upstream/caller.ts';
import type { CompositionRequest } from './composition.ts';
import { errorOf, sectionText } from './section.ts';

interface Streaming {
  readonly legs: Legs;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * One line per section the moment it is there, and `{"complete":true}` at the end. Begins when the required sections
 * are there, so that their failure is still a problem with its status. A refusal after that cuts the stream off.
 */
export async function ndjsonAnswer(
  exchange: Exchange,
  request: CompositionRequest,
  { legs, headers }: Streaming,
): Promise<Answer> {
  const first = await Promise.all(vitalOf(request).map(async (name) => [name, await legs.get(name)] as const));
  const timing = first.map(([name, leg]) => timingOf(name, leg?.ms ?? 0, leg?.state)).join(', ');
  exchange.notes = { ...exchange.notes, cache: 'stream' };
  exchange.beginStream();
  return {
    status: 200,
    headers: { ...headers, ...NO_STORE, 'Content-Type': 'application/x-ndjson', 'X-Accel-Buffering': 'no' },
    body: streamOf(exchange, request, legs),
    ...(timing && { timing }),
  };
}

function streamOf(exchange: Exchange, request: CompositionRequest, legs: Legs): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async start(controller) {
      const send = (line: string) => controller.enqueue(encoder.encode(`${line}\n`));
      const lines = request.wanted.map(async (name) => send(lineOf(request, name, await legs.get(name))));
      const outcomes = await Promise.allSettled(lines);
      exchange.end();
      if (exchange.signal().reason instanceof ClientLeft) return; // nobody reads on
      if (outcomes.every(({ status }) => status === 'fulfilled')) send('{"complete":true}');
      controller.close();
    },
    cancel() {
      exchange.end();
    },
  });
}

function lineOf(request: CompositionRequest, name: string, leg: Leg | undefined): string {
  if (!leg) throw new Error(`${name} was not composed`);
  const head = `{"section":${JSON.stringify(name)},"state":"${leg.state}"`;
  if (isBad(leg)) return `${head},"error":${JSON.stringify(errorOf(leg))}}`;
  return `${head},"data":${sectionText(request, name, leg).replaceAll(/[\r\n]+\s*/g, ' ')}}`;
}
