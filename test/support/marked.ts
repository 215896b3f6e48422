import { matchPath, type OperationId, operations } from './account-api.ts';
import type { Method, Operation } from '../../src/upstream/operation.ts';
import type { Call } from './calls.ts';
import { exampleBody, exampleInput } from './examples.ts';
import { json, type Step } from './steps.ts';

const rows: Readonly<Record<OperationId, Operation>> = operations;

/** A good answer with a mark in it, which `markOf` finds again. */
export const bodyOf = (id: OperationId, mark: number | string): string =>
  rows[id].answer === null ? '' : exampleBody(id).replace('{', `{"x_mark":${JSON.stringify(mark)},`);

export const markOf = (text: string): unknown => {
  const found = /"x_mark":("[^"]*"|\d+)/.exec(text)?.[1];
  return found === undefined ? undefined : JSON.parse(found);
};

const pathOf = (id: OperationId): string => exampleInput(id).path;

/** For `upstream.on`. */
export const callOf = (id: OperationId): string => `${rows[id].method} ${pathOf(id)}`;

/**
 * The operation that was called.
 * @throws Error for a call of none
 */
export const idOf = ({ method, path }: Pick<Call, 'method' | 'path'>): OperationId => {
  const operation = matchPath(path)?.methods.get(method as Method);
  if (!operation) throw new Error(`${method} ${path} is no operation`);
  return operation.id as OperationId; // one of the table, which `match` reads too
};

/** The good answer to whichever operation is called. */
export const goodAnswer = (to: Call, mark: number | string): Step => {
  const id = idOf(to);
  return json(rows[id].answer === null ? 204 : 200, bodyOf(id, mark));
};

export const tokenOf = ({ headers }: Pick<Call, 'headers'>): string =>
  (headers['authorization'] ?? '').replace(/^Token /, '');
