import * as z from 'zod/mini';
import { exampleOf } from '../../src/upstream/fields.ts';
import type { ValueOf } from '../../src/upstream/operation.ts';
import { type OperationId, operations } from './operations.ts';
import { type Instant, printInstant } from './time.ts';

type InstantName = `${string}_at` | `${string}_date` | 'timestamp';

/** A documented value as the sandbox keeps it: timestamps are instants, and one id is larger than a number can hold. */
type Kept<T> = T extends readonly (infer Item)[]
  ? Kept<Item>[]
  : T extends object
    ? { [K in keyof T as string extends K ? never : K]: KeptField<K, T[K]> }
    : T;

type KeptField<Name, T> = Name extends InstantName
  ? Instant | Extract<T, null>
  : Name extends 'user_id'
    ? number | bigint
    : Kept<T>;

type Listed<T> = T extends { results: (infer Item)[] } ? Item : T extends (infer Item)[] ? Item : T;

/** What an operation answers; of a list one item. */
export type Resource<Id extends OperationId> = Kept<Listed<ValueOf<(typeof operations)[Id]>>>;

// zod's documented way to tell schemas apart.
const defOf = ({ _zod: { def } }: z.core.$ZodType) => def as z.core.$ZodTypes['_zod']['def'];

const isTimestamp = (schema: z.core.$ZodType) => z.globalRegistry.get(schema)?.['format'] === 'date-time';

/** The documented fields of an object; none where its keys are data. */
function fieldsOf(schema: z.core.$ZodType): [name: string, field: z.core.$ZodType][] {
  const def = defOf(schema);
  return def.type === 'object' ? Object.entries(def.shape) : [];
}

/** The documented example. Its timestamps are all `at`; texts, numbers and timestamps that may be null are null. */
export function example<Id extends OperationId>(
  id: Id,
  at: Instant,
  differences: Partial<Resource<Id>> = {},
): Resource<Id> {
  const { answer } = operations[id];
  const documented = answer && valueOf(itemOf(answer), at);
  return { ...(documented as Resource<Id>), ...differences };
}

function itemOf(schema: z.core.$ZodType): z.core.$ZodType {
  const def = defOf(schema);
  if (def.type === 'array') return def.element;
  const results = fieldsOf(schema).find(([name]) => name === 'results')?.[1];
  return results ? itemOf(results) : schema;
}

function valueOf(schema: z.core.$ZodType, at: Instant): unknown {
  if (isTimestamp(schema)) return at;
  const def = defOf(schema);
  if (def.type === 'nullable') return fieldsOf(def.innerType).length > 0 ? valueOf(def.innerType, at) : null;
  if ('innerType' in def) return valueOf(def.innerType, at);
  if (def.type === 'array') return [valueOf(def.element, at)];
  const fields = fieldsOf(schema);
  if (fields.length === 0) return exampleOf(schema);
  return Object.fromEntries(fields.map(([name, field]) => [name, valueOf(field, at)]));
}

/**
 * JSON text as the upstream, written in Python, writes it: `25.0` where the schema has no integer. What the schema does
 * not have is left out: a resource may hold more than it shows.
 */
export function print(schema: z.core.$ZodType, value: unknown): string {
  const def = defOf(schema);
  if (value === null) return 'null';
  if ('innerType' in def) return print(def.innerType, value);
  if (def.type === 'union' && def.options[0]) return print(def.options[0], value);
  if (Array.isArray(value) && def.type === 'array')
    return `[${value.map((item) => print(def.element, item)).join(',')}]`;
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return printNumber(schema, value);
  const fields = fieldsOf(schema);
  return fields.length > 0 && value instanceof Object ? printFields(fields, value) : JSON.stringify(value);
}

function printNumber(schema: z.core.$ZodType, value: number): string {
  if (isTimestamp(schema)) return `"${printInstant(value)}"`;
  const isFloat = z.globalRegistry.get(schema)?.['type'] !== 'integer';
  return isFloat && Number.isInteger(value) ? value.toFixed(1) : String(value);
}

function printFields(fields: ReturnType<typeof fieldsOf>, object: object): string {
  const values = new Map<string, unknown>(Object.entries(object));
  const members = fields
    .filter(([name]) => values.get(name) !== undefined)
    .map(([name, field]) => `${JSON.stringify(name)}:${print(field, values.get(name))}`);
  return `{${members.join(',')}}`;
}
