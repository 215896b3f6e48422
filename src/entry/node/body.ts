import type { IncomingMessage } from 'node:http';

/** The body of a request; null where its head announces none. Whoever stops reading lets the rest of it pass by. */
export function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> | null {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = incoming.headers;
  if (length === '0' && coding === undefined) return null;
  const parts = incoming.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array, undefined>;
  const stream = {
    async pull(to: ReadableStreamDefaultController<Uint8Array>) {
      const part = await parts.next();
      if (part.done) to.close();
      else to.enqueue(part.value);
    },
    async cancel() {
      await parts.return?.();
      incoming.resume();
    },
  };
  return new ReadableStream(stream, { highWaterMark: 0 });
}
