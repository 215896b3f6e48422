import { Validator } from '@seriousme/openapi-schema-validator';
import * as z from 'zod';
import { openGateway } from '../../support/gateway.ts';

type Json = z.core.util.JSONType;
export type Schema = Readonly<Record<string, unknown>>;

interface Media {
  readonly schema?: Schema;
  readonly example?: Json;
  readonly examples?: Readonly<Record<string, { readonly value: Json }>>;
}

type Content = Readonly<Record<string, Media>>;

interface Answer {
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Content;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}

export interface Item {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Answer>>;
}

export interface Document {
  readonly openapi: string;
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Item>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Answer>>;
  };
}

/** As a client gets it. */
export const document = (await openGateway({}).call('/openapi.json', { token: null })).json as Document;

export const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, item]) => ({ name: `${method.toUpperCase()} ${path}`, path, item })),
);

export function itemOf(path: string, method = 'get'): Item {
  const item = document.paths[path]?.[method.toLowerCase()];
  if (!item) throw new Error(`${method} ${path} is not in the document`);
  return item;
}

/** Every body in the document. */
export const bodies = [
  ...calls.flatMap(({ name, item }) =>
    Object.entries(item.responses).map(([status, { content = {} }]) => [`${name} ${status}`, content] as const),
  ),
  ...calls.map(({ name, item }) => [`${name} body`, item.requestBody?.content ?? {}] as const),
  ...Object.entries(document.components.responses).map(([name, { content = {} }]) => [name, content] as const),
].flatMap(([name, content]) =>
  Object.entries(content).map(([type, media]) => ({ name: `${name} ${type}`, type, media })),
);

/** What is wrong with the text of a document. */
export const flawsIn = async (text: string): Promise<unknown> =>
  (await new Validator().validate(JSON.parse(text) as Record<string, unknown>)).errors;

/** The document's own schema, read back by zod: what a client that goes by the document would take. */
export function checkerOf(schema: Schema = {}) {
  const local = JSON.stringify({ ...schema, $defs: document.components.schemas });
  return z.fromJSONSchema(
    JSON.parse(local.replaceAll('#/components/schemas/', '#/$defs/')) as z.core.JSONSchema.JSONSchema,
  );
}

/** What a schema misses in a value: `data.subscription`. */
export const misfits = (schema: Schema | undefined, value: unknown): readonly string[] =>
  checkerOf(schema)
    .safeParse(value)
    .error?.issues.map(({ path }) => path.join('.')) ?? [];
