import { GatewayError } from '../core/errors.ts';
import { problemOf } from '../core/problem.ts';
import type { Reader } from '../upstream/caller.ts';
import { withOrigin } from '../upstream/links.ts';
import { matchPath } from '../upstream/match.ts';
import type { Operation } from '../upstream/operation.ts';
import type { OperationInput } from '../upstream/request.ts';
import type { Gateway } from './gateway.ts';

export interface BatchItem {
  readonly id: string;
  /** A pass-through path with its query. */
  readonly path: string;
}

export interface BatchTools {
  readonly gateway: Gateway;
  readonly caller: Reader;
  /** Origin for the links of pages. */
  readonly origin: string;
}

/** Answers every item at once, as JSON in the order asked; equal ones share a call like all equal reads do. */
export async function answerBatch(tools: BatchTools, items: readonly BatchItem[]): Promise<string> {
  return `{"responses":[${(await Promise.all(items.map((item) => answerItem(tools, item)))).join(',')}]}`;
}

async function answerItem(tools: BatchTools, item: BatchItem): Promise<string> {
  try {
    const { operation, input } = resolve(item.path);
    const { status, entry } = await tools.gateway.read(operation, input, tools.caller);
    return responseOf(item, status, entry === null ? 'null' : withOrigin(entry, tools.origin));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const [instance = ''] = item.path.split('?', 1);
    const problem = problemOf(error, { instance, requestId: tools.caller.from.requestId });
    return responseOf(item, error.status, JSON.stringify(problem));
  }
}

/** @throws GatewayError `unknown_endpoint`, `method_not_allowed` where a path has no GET */
function resolve(target: string): { operation: Operation; input: OperationInput } {
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const match = matchPath(path);
  if (!match) throw GatewayError.of('unknown_endpoint');
  const operation = match.methods.get('GET');
  if (!operation) throw GatewayError.of('method_not_allowed');
  return { operation, input: { id: match.id, query: mark < 0 ? '' : target.slice(mark + 1) } };
}

const responseOf = ({ id }: BatchItem, status: number, body: string) =>
  `{"id":${JSON.stringify(id)},"status":${status},"body":${body}}`;
