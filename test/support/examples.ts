import * as z from 'zod/mini';
import { type Operation } from '../../src/upstream/operation.ts';
import { type OperationId, operations } from './account-api.ts';

/** JSON texts by field name: texts, because `25.0` and 2^53-beyond integers do not survive as values. */
type Fields = Readonly<Record<string, string>>;

/** What a schema-guided copy would drop or change: an unknown field, `2.50`, an integer beyond 2^53. */
const UNKNOWN_FIELDS: Fields = { x_new_field: '{"deep":[1,2.50,"é"]}', x_big: '9007199254740993123' };

/** That of an item whose ids are digits, and of one with letters. */
const idOf = (form: string) => (form === 'slug' ? 'auth_91-a' : '12345');

const objectText = (fields: Fields) =>
  `{${Object.entries(fields)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join(',')}}`;

/** The first of a field's documented examples; `null` is a legal one, hence the list. */
const documented = (schema: z.core.$ZodType): readonly unknown[] => {
  const examples = z.globalRegistry.get(schema)?.['examples'];
  return Array.isArray(examples) ? examples.slice(0, 1) : [];
};

/** An integral example of a float is written `25.0`, as a server with real floats does. */
const numberText = (schema: z.core.$ZodType, value: number) => {
  const isFloat = z.globalRegistry.get(schema)?.['type'] !== 'integer';
  return isFloat && Number.isInteger(value) ? value.toFixed(1) : String(value);
};

const documentedText = (schema: z.core.$ZodType, example: unknown) =>
  typeof example === 'number' ? numberText(schema, example) : JSON.stringify(example);

type Def = z.core.$ZodTypes['_zod']['def'];

// zod's documented way to tell schemas apart.
const defOf = ({ _zod: { def } }: z.core.$ZodType) => def as Def;

const LEAVES: Partial<Record<Def['type'], string>> = {
  string: '"text"',
  number: '1.0',
  boolean: 'true',
  null: 'null',
  unknown: 'null',
  lazy: 'null', // what has itself in it ends there
};

/** The documented example, else one made by walking the schema; `extras` go into every open object on the way. */
const textOf = (schema: z.core.$ZodType, extras: Fields): string => {
  const [example] = documented(schema).map((value) => documentedText(schema, value));
  return example ?? builtText(defOf(schema), extras);
};

const builtText = (def: Def, extras: Fields): string => {
  if (def.type === 'object') return objectText({ ...shapeTexts(def.shape, extras), ...(isOpen(def) && extras) });
  if (def.type === 'array') return `[${textOf(def.element, extras)}]`;
  if (def.type === 'record') return objectText({ key: textOf(def.valueType, extras) });
  if (def.type === 'union') return textOf(firstOf(def.options), extras);
  if (def.type === 'literal') return JSON.stringify(firstOf(def.values));
  if (def.type === 'enum') return JSON.stringify(firstOf(Object.values(def.entries)));
  if ('innerType' in def) return textOf(def.innerType, extras);
  return LEAVES[def.type] ?? unsupported(def.type);
};

const shapeTexts = (shape: z.core.$ZodShape, extras: Fields): Fields =>
  Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, textOf(field, extras)]));

const isOpen = (def: z.core.$ZodObjectDef) => def.catchall !== undefined && defOf(def.catchall).type === 'unknown';

const firstOf = <T>(items: readonly T[]): T => {
  const [first] = items;
  if (first === undefined) throw new Error('a schema with no value to choose from');
  return first;
};

const unsupported = (type: string): never => {
  throw new Error(`no example for a schema of type ${type}; add it here or give the field an example`);
};

/** A value that fits the schema, made of the examples its fields document. */
export const exampleOf = (schema: z.core.$ZodType): unknown => JSON.parse(textOf(schema, {}));

const rowOf = (id: OperationId): Operation => operations[id];

/**
 * JSON text of a good answer, `''` where the answer has no body. Every open object in it has fields that nobody
 * documented. `changes` replace or add fields of the outermost object, given as values.
 */
export const exampleBody = (id: OperationId, changes: Readonly<Record<string, unknown>> = {}): string =>
  exampleAnswer(rowOf(id), changes);

/** The same of a row of any table. */
export const exampleAnswer = (
  { answer }: Pick<Operation, 'answer'>,
  changes: Readonly<Record<string, unknown>> = {},
): string => {
  if (answer === null) return '';
  const def = defOf(answer);
  if (def.type !== 'object') return textOf(answer, UNKNOWN_FIELDS);
  const changed = Object.entries(changes).map(([name, value]) => [name, JSON.stringify(value)] as const);
  const fields = { ...shapeTexts(def.shape, UNKNOWN_FIELDS), ...UNKNOWN_FIELDS };
  return objectText({ ...fields, ...Object.fromEntries<string>(changed) });
};

export interface ExampleInput {
  readonly method: Operation['method'];
  /** With the id filled in and the trailing slash. */
  readonly path: string;
  /** Every documented parameter, encoded, without the `?`. */
  readonly query?: string;
  /** JSON text. */
  readonly body?: string;
}

/** Query parameters are checked as text and document no examples: the first of these that is accepted will do. */
const parameterText = (schema: z.ZodMiniType): string => {
  const { type } = defOf(schema);
  const candidates = type === 'enum' ? [String(exampleOf(schema))] : ['1', '2026-06-09T11:50:08-07:00'];
  const accepted = candidates.find((text) => schema.safeParse(text).success);
  if (accepted === undefined) throw new Error('no example for a query parameter');
  return accepted;
};

const queryText = (query: NonNullable<Operation['query']>) =>
  new URLSearchParams(Object.entries(query).map(([name, schema]) => [name, parameterText(schema)])).toString();

/** A request that the operation accepts. */
export const exampleInput = (id: OperationId): ExampleInput => {
  const { method, path, params, query, body } = rowOf(id);
  return {
    method,
    path: path.replace('{id}', idOf(params['id'] ?? '')),
    ...(query && { query: queryText(query) }),
    ...(body && { body: textOf(body.schema, {}) }),
  };
};

/** The same as a test's client takes it. */
export const exampleRequest = (id: OperationId): Pick<ExampleInput, 'method' | 'path' | 'body'> => {
  const { method, path, body } = exampleInput(id);
  return { method, path, ...(body !== undefined && { body }) };
};
