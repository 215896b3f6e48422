import { GatewayError, problemOf } from '../core/errors.ts';
import type { Soon } from '../core/runtime.ts';
import type { Reader, Reading } from '../cache/reader.ts';
import { type Entry, isAddress } from '../store/store.ts';
import type { Read, RequestContext } from '../upstream/call.ts';
import { withOrigin } from '../upstream/links.ts';
import { matchPath } from '../upstream/operations/index.ts';
import { targetOf } from '../upstream/client.ts';
import type { Gateway } from './gateway.ts';
import { isRefusal } from './compose.ts';

export interface BatchItem {
  readonly id: string;
  /** A pass-through path with its query. */
  readonly path: string;
}

type ItemOutcome = Reading | GatewayError;

/**
 * Answers every item, as JSON in the order asked. Until the upstream has accepted the credential, items are read one
 * after another, and a 401 or 403 is then the answer to all that are left; after that the rest is read at once.
 * `maxBytes`: of all bodies together.
 */
export async function answerBatch(
  gateway: Gateway,
  reader: Reader,
  items: readonly BatchItem[],
  maxBytes: number,
): Promise<string> {
  const outcomeOf = outcomesOf(gateway, reader);
  const outcomes: Promise<ItemOutcome>[] = [];
  let isAccepted = !isAddress(reader.owner);
  let refusal: GatewayError | undefined;
  for (const { path } of items) {
    const outcome = refusal ? Promise.resolve(refusal) : outcomeOf(path);
    outcomes.push(outcome);
    if (isAccepted) continue;
    const first = await outcome;
    if (!(first instanceof GatewayError)) isAccepted = true;
    else if (isRefusal(first)) refusal = first;
  }
  const responseOf = responsesOf(reader.context, maxBytes);
  const done = await Promise.all(outcomes);
  return `{"responses":[${items.map((item, i) => responseOf(item, done[i] ?? TOO_LARGE)).join(',')}]}`;
}

/** Reads the path of an item; items with equal paths share a read. */
function outcomesOf(gateway: Gateway, reader: Reader): (path: string) => Promise<ItemOutcome> {
  const readings = new Map<string, Soon<Reading>>();
  return async (path) => {
    try {
      const read = readAt(path);
      const target = targetOf(read.operation, read.input);
      const reading = readings.get(target) ?? reader.fresh(read) ?? gateway.read(read, reader);
      readings.set(target, reading);
      return await reading;
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
  };
}

/** @throws GatewayError `unknown_endpoint`, `method_not_allowed` if the path has no GET */
function readAt(target: string): Read {
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const match = matchPath(path);
  if (!match) throw GatewayError.of('unknown_endpoint');
  const operation = match.methods.get('GET');
  if (!operation) throw GatewayError.of('method_not_allowed');
  return { operation, input: { id: match.id, query: mark < 0 ? '' : target.slice(mark + 1) } };
}

/** Each body takes of what those before it have left. One that does not fit is not even put together. */
function responsesOf({ origin, mount, requestId }: RequestContext, maxBytes: number) {
  const weights = new Map<Entry, number>(); // equal items share an entry
  let left = maxBytes;
  /** Whether there is room for so many bytes, which then are taken. */
  const take = (bytes: number) => {
    const fits = bytes <= left;
    if (fits) left -= bytes;
    return fits;
  };
  const bodyOf = ({ entry }: Reading): string | undefined => {
    if (!entry) return 'null';
    const bytes = weights.get(entry) ?? weightOf(entry, origin);
    weights.set(entry, bytes);
    return take(bytes) ? withOrigin(entry, { origin }) : undefined;
  };
  return ({ id, path }: BatchItem, outcome: ItemOutcome): string => {
    const instance = mount + path.split('?', 1)[0];
    const response = (status: number, body: string) => `{"id":${JSON.stringify(id)},"status":${status},"body":${body}}`;
    const problem = (error: GatewayError) => JSON.stringify(problemOf(error, { instance, mount, requestId }));
    const isProblem = outcome instanceof GatewayError;
    const body = isProblem ? problem(outcome) : bodyOf(outcome);
    const fits = body !== undefined && (!isProblem || take(bytesOf(body)));
    return fits ? response(outcome.status, body) : response(TOO_LARGE.status, problem(TOO_LARGE));
  };
}

const encoder = new TextEncoder();

const bytesOf = (text: string): number => encoder.encode(text).length;

/** Bytes of an entry's text with the origin, which is ASCII, in its links. */
const weightOf = ({ text, links }: Entry, origin: string): number => bytesOf(text) + links.length * origin.length;

const TOO_LARGE = GatewayError.of('payload_too_large', {
  detail: 'With this answer the batch would be too large. Ask for it alone.',
});
