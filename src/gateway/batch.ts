import type { Reader, Reading } from '../cache/reader.ts';
import { GatewayError, type Problem } from '../core/errors.ts';
import type { Clock, MaybePromise } from '../core/runtime.ts';
import { beginPhase } from '../core/timeline.ts';
import { isAddress } from '../store/port.ts';
import type { Read } from '../upstream/call.ts';
import { targetOf } from '../upstream/client.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Table } from '../upstream/table.ts';
import { firstAlone, type ReadOutcome } from './first-alone.ts';
import type { Gateway } from './gateway.ts';

/** An item as a client asks for it. */
interface Asked {
  readonly id: string;
  /** A pass-through path with its query. */
  readonly path: string;
}

/** With what it reads, or why it reads nothing. */
export interface BatchItem extends Asked {
  readonly read: Read | GatewayError;
}

/** Items with equal targets share a read. */
export function itemsOf(asked: readonly Asked[], table: Table): BatchItem[] {
  const reads = new Map<string, Read>();
  return asked.map(({ id, path }) => {
    const read = readAt(path, table);
    if (read instanceof GatewayError) return { id, path, read };
    const target = targetOf(read.operation, read.input);
    const shared = reads.get(target) ?? read;
    reads.set(target, shared);
    return { id, path, read: shared };
  });
}

/** Each once. */
export const readsIn = (items: readonly BatchItem[]): Read[] => [
  ...new Set(items.flatMap(({ read }) => (read instanceof GatewayError ? [] : read))),
];

interface Answering {
  readonly clock: Clock;
  readonly gateway: Gateway;
  readonly reader: Reader;
  /** Most bytes of all bodies together. */
  readonly maxBytes: number;
  readonly problemFor: (error: GatewayError, instance: string) => Problem;
}

/** Answers every item, as JSON in the order asked. */
export async function answerBatch(
  items: readonly BatchItem[],
  { clock, gateway, reader, maxBytes, problemFor }: Answering,
): Promise<string> {
  const outcomes = await outcomesOf({ clock, gateway, reader }, items);
  const { origin, mount } = reader.context;
  // Each body takes of what those before it have left. One that does not fit is not even put together.
  let left = maxBytes;
  const responses = items.map(({ id, path }, i) => {
    const instance = mount + path.split('?', 1)[0];
    const problem = (error: GatewayError) => JSON.stringify(problemFor(error, instance));
    const outcome = outcomes[i] ?? TOO_LARGE;
    const body = outcome instanceof GatewayError ? { text: problem(outcome), links: [] } : outcome.entry;
    const bytes = body ? bytesOf(body.text, left) + body.links.length * origin.length : 0; // an origin is ASCII
    const fits = bytes <= left;
    if (fits) left -= bytes;
    const text = fits ? body && withOrigin(body, { origin }) : problem(TOO_LARGE);
    return `{"id":${JSON.stringify(id)},"status":${fits ? outcome.status : TOO_LARGE.status},"body":${text}}`;
  });
  return `{"responses":[${responses.join(',')}]}`;
}

/** Reads every item. */
function outcomesOf(
  { clock, gateway, reader }: Pick<Answering, 'clock' | 'gateway' | 'reader'>,
  items: readonly BatchItem[],
): Promise<ReadOutcome[]> {
  const begunAt = clock.now();
  const ask = (read: Read, leg: string) => {
    // It has waited for the items before it, of another call.
    if (begunAt < clock.now()) beginPhase(reader.context, 'joined', begunAt, leg).end = clock.now();
    return gateway.read(read, reader, leg);
  };
  const readings = new Map<Read, MaybePromise<Reading>>();
  const outcomeOf = async ({ read }: BatchItem, at: number): Promise<ReadOutcome> => {
    if (read instanceof GatewayError) return read;
    try {
      const reading = readings.get(read) ?? reader.fresh(read) ?? ask(read, `${read.operation.id}#${at + 1}`);
      readings.set(read, reading);
      return await reading;
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
  };
  return firstAlone(items, outcomeOf, !isAddress(reader.owner));
}

/** What is read at a path with its query, or why nothing is: `unknown_endpoint`, `method_not_allowed`. */
function readAt(target: string, table: Table): Read | GatewayError {
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const match = table.at(path);
  if (!match) return GatewayError.of('unknown_endpoint');
  const operation = match.methods.get('GET');
  if (!operation) return GatewayError.of('method_not_allowed');
  return { operation, input: { id: match.id, query: mark < 0 ? '' : target.slice(mark + 1) } };
}

const encoder = new TextEncoder();

/** Infinite for more than `most`, which not all of a long text has to be looked at for. */
const bytesOf = (text: string, most: number): number => (text.length > most ? Infinity : encoder.encode(text).length);

const TOO_LARGE = GatewayError.of('payload_too_large', {
  detail: 'With this answer the batch would be too large. Ask for it alone.',
});
