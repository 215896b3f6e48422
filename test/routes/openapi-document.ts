import * as z from 'zod';
import { openApiText } from '../../src/routes/document.ts';
import { accountTables } from '../support/account-api.ts';

type Json = z.core.util.JSONType;
export type Schema = Readonly<Record<string, unknown>>;

export interface Media {
  readonly schema?: Schema;
  readonly example?: Json;
  readonly examples?: Readonly<Record<string, { readonly value: Json }>>;
}

interface Answer {
  readonly $ref?: string;
  readonly description?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, Media>>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

interface PathItem {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, Answer>>;
}

interface Document {
  readonly openapi: string;
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, PathItem>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Answer>>;
  };
}

/** As a client gets it. */
export const parsed = async () => JSON.parse(await openApiText(accountTables)) as Document;

export const document = await parsed();

export const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, item]) => ({ name: `${method.toUpperCase()} ${path}`, path, method, item })),
);

export const itemOf = (path: string, method: string): PathItem => {
  const item = document.paths[path]?.[method.toLowerCase()];
  if (!item) throw new Error(`${method} ${path} is not in the document`);
  return item;
};

export const parametersIn = (item: PathItem, place: string) =>
  (item.parameters ?? []).filter((one) => one.in === place);

/** The document's own schema, read back by zod: what a client that goes by the document would take. */
export const checkerOf = (schema: Schema) => {
  const $defs = document.components.schemas;
  const local = JSON.stringify({ ...schema, $defs }).replaceAll('#/components/schemas/', '#/$defs/');
  return z.fromJSONSchema(JSON.parse(local) as z.core.JSONSchema.JSONSchema);
};
