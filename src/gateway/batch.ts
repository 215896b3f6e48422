import type { ReadResult } from '../cache/read.ts';
import { GatewayError, type Problem } from '../core/errors.ts';
import type { ClientRequest } from '../core/request.ts';
import type { MaybePromise } from '../core/runtime.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { withOrigin } from '../upstream/links.ts';
import type { Read } from '../upstream/read.ts';
import { firstAlone, hasAcceptedCredential } from './admission.ts';
import type { Gateway } from './gateway.ts';

/** An item as a client asks for it. */
interface AskedItem {
  readonly id: string;
  /** A pass-through path with its query. */
  readonly path: string;
}

/** An item with its read, or with the error for which it reads nothing. */
export interface BatchItem extends AskedItem {
  readonly read: Read | GatewayError;
}

/** Finds the read of each item. Items that read the same share one `Read`. */
export function itemsOf(asked: readonly AskedItem[], gateway: Gateway): BatchItem[] {
  const reads = new Map<string, Read>();
  return asked.map(({ id, path }) => {
    const read = readAt(path, gateway);
    if (read instanceof GatewayError) return { id, path, read };
    const shared = reads.get(read.key) ?? read;
    reads.set(read.key, shared);
    return { id, path, read: shared };
  });
}

/** The reads of a batch, each once. */
export const readsIn = (items: readonly BatchItem[]): Read[] => [
  ...new Set(items.flatMap(({ read }) => (read instanceof GatewayError ? [] : read))),
];

interface Answering {
  readonly request: ClientRequest;
  readonly snapshot: Snapshot;
  readonly problemFor: (error: GatewayError, instance: string) => Problem;
}

/** Answers every item, as JSON in the order asked. All bodies together may be as large as one body of the upstream's. */
export async function answerBatch(
  gateway: Gateway,
  items: readonly BatchItem[],
  { request, snapshot, problemFor }: Answering,
): Promise<string> {
  const outcomes = await outcomesOf(gateway, items, request, snapshot);
  const { origin, mount } = request;
  // Each body takes of what those before it have left. A body that does not fit is not even put together.
  let left = gateway.deps.config.upstreamMaxBodyBytes;
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
function outcomesOf(gateway: Gateway, items: readonly BatchItem[], request: ClientRequest, snapshot: Snapshot) {
  const { clock } = gateway.deps;
  const begunAt = clock.now();
  const ask = (read: Read, leg: string) => {
    // The time in which the items before it were read is a phase of this item.
    if (begunAt < clock.now()) request.beginPhase('joined', leg, begunAt).end = clock.now();
    return gateway.read(read, request, snapshot, { leg });
  };
  const results = new Map<Read, MaybePromise<ReadResult>>();
  const outcomeOf = async ({ read }: BatchItem, at: number): Promise<ReadResult | GatewayError> => {
    if (read instanceof GatewayError) return read;
    try {
      const result =
        results.get(read) ?? gateway.fresh(read, request, snapshot) ?? ask(read, `${read.operation.id}#${at + 1}`);
      results.set(read, result);
      return await result;
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
  };
  return firstAlone(items, outcomeOf, hasAcceptedCredential(request));
}

/** The read at a path with its query, or the error `unknown_endpoint` or `method_not_allowed`. */
function readAt(target: string, { deps: { table }, rows }: Gateway): Read | GatewayError {
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const match = table.at(path);
  if (!match) return GatewayError.of('unknown_endpoint');
  const operation = match.methods.get('GET');
  if (!operation) return GatewayError.of('method_not_allowed');
  return rows.of(operation).read(match.id, mark < 0 ? '' : target.slice(mark + 1));
}

const encoder = new TextEncoder();

/** The length of a text in UTF-8. Infinite for a text with more characters than `most`, which is not encoded. */
const bytesOf = (text: string, most: number): number => (text.length > most ? Infinity : encoder.encode(text).length);

const TOO_LARGE = GatewayError.of('payload_too_large', {
  detail: 'With this answer the batch would be too large. Ask for it alone.',
});
