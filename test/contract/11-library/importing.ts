import { join } from 'node:path';
import { rowsFrom } from '../../../src/entry/cli/import.ts';
import type { Operation } from '../../../src/index.ts';
import { tableOf } from '../../../src/upstream/table.ts';
import type { OperationId } from '../../support/account-api.ts';
import { openGateway } from '../../support/gateway.ts';
import { folderWith, ROOT } from '../../support/process.ts';
import { answer, Upstream } from '../../support/upstream.ts';

type Rows = Readonly<Record<string, Operation>>;

/** What is printed for a document in a file of this name. */
export const printed = (document: object | string, file = 'openapi.json') => {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  return rowsFrom(join(folderWith({ [file]: text }), file));
};

/** The rows of printed code, and a gateway with them. */
export async function gatewayOf(code: string) {
  const source = code.replace('from "portico"', `from ${JSON.stringify(join(ROOT, 'src/index.ts'))}`);
  const file = join(folderWith({ 'rows.ts': source }), 'rows.ts');
  const { rows } = (await import(/* @vite-ignore */ file)) as { readonly rows: Rows };
  const table = tableOf(rows);
  const gateway = openGateway({}, { table, overviews: [], upstream: new Upstream(table) });
  const next = (id: string, body: unknown) => gateway.upstream.next(id as OperationId, answer(200, body));
  return { rows, next, ...gateway };
}

export const api = (paths: object, more: object = {}) => ({
  openapi: '3.1.0',
  info: { title: 'T', version: '1' },
  paths,
  ...more,
});
export const json = (schema: object) => ({ content: { 'application/json': { schema } } });
export const answered = (schema: object, more: object = {}) => ({
  responses: { 200: { description: '', ...json(schema), ...more } },
});
export const object = <P extends object>(properties: P, more: object = {}) => ({ type: 'object', properties, ...more });
export const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
export const text = { type: 'string' };
export const list = (items: object) => ({ type: 'array', items });
