import { GatewayError } from '../core/errors.ts';
import { problemOf } from '../core/problem.ts';
import type { Reading } from '../cache/reading.ts';
import type { Reader } from '../cache/read-through.ts';
import { isAddress } from '../store/owner.ts';
import { withOrigin } from '../upstream/links.ts';
import { matchPath } from '../upstream/match.ts';
import { type Read, targetOf } from '../upstream/request.ts';
import type { RequestContext } from '../upstream/request-context.ts';
import type { Gateway } from './gateway.ts';
import { isRefusal } from './legs.ts';

export interface BatchItem {
  readonly id: string;
  /** A pass-through path with its query. */
  readonly path: string;
}

type Outcome = Reading | GatewayError;

/**
 * Answers every item, as JSON in the order asked. Until the upstream has accepted the credential, items are read one
 * after another, and a 401 or 403 is then the answer to all that are left; after that the rest is read at once.
 */
export async function answerBatch(gateway: Gateway, reader: Reader, items: readonly BatchItem[]): Promise<string> {
  const read = readerOf(gateway, reader);
  const answers: { readonly item: BatchItem; readonly outcome: Outcome | Promise<Outcome> }[] = [];
  let isAccepted = !isAddress(reader.owner);
  let refusal: GatewayError | undefined;
  for (const item of items) {
    const outcome = refusal ?? read(item.path);
    answers.push({ item, outcome });
    if (isAccepted) continue;
    const first = await outcome;
    if (!(first instanceof GatewayError)) isAccepted = true;
    else if (isRefusal(first)) refusal = first;
  }
  const responses = answers.map(async ({ item, outcome }) => responseOf(reader.context, item, await outcome));
  return `{"responses":[${(await Promise.all(responses)).join(',')}]}`;
}

/** Reads the path of an item; items with equal paths share a read. */
function readerOf(gateway: Gateway, reader: Reader): (path: string) => Promise<Outcome> {
  const reads = new Map<string, Promise<Reading>>();
  return async (path) => {
    try {
      const read = readAt(path);
      const target = targetOf(read.operation, read.input);
      const reading = reads.get(target) ?? gateway.read(read, reader);
      reads.set(target, reading);
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

function responseOf(context: RequestContext, { id, path }: BatchItem, outcome: Outcome): string {
  const head = `{"id":${JSON.stringify(id)},"status":${outcome.status},"body":`;
  if (!(outcome instanceof GatewayError))
    return `${head}${outcome.entry ? withOrigin(outcome.entry, context.origin) : 'null'}}`;
  const [instance = ''] = path.split('?', 1);
  return `${head}${JSON.stringify(problemOf(outcome, { instance, requestId: context.requestId }))}}`;
}
