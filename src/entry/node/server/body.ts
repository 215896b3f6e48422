import type { IncomingMessage } from 'node:http';
import { valueOf } from './head.ts';

/** The body of a request; null if its head announces none. If the reader cancels, the rest is discarded. */
export function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> | null {
  const { rawHeaders } = incoming;
  const hasNone = (valueOf('content-length', rawHeaders) ?? '0') === '0';
  if (hasNone && valueOf('transfer-encoding', rawHeaders) === undefined) return null;
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
