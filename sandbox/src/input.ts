import * as z from 'zod/mini';
import { itemsOfIssue } from '../../src/upstream/issues.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { Refusal } from './errors.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** Reads a JSON object, and refuses others as Django REST Framework does. An empty body is an empty object. */
export async function readBody(request: Request): Promise<JsonObject> {
  const value = parse((await request.text()) || '{}');
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw new Refusal(400, { non_field_errors: ['expected an object'] });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, { detail: 'JSON parse error - Expecting value: line 1 column 1 (char 0)' });
  }
}

/** Checks fields of a body or a query, and refuses the bad ones as `{"field":[{message, code}]}`, in the gateway's words. */
export function checkFields<T>(schema: z.ZodMiniType<T>, fields: JsonObject): T {
  const checked = schema.safeParse(fields);
  if (checked.success) return checked.data;
  const errors: Record<string, { message: string; code: string }[]> = {};
  for (const { field, message, code } of checked.error.issues.flatMap(itemsOfIssue)) {
    (errors[field ?? 'non_field_errors'] ??= []).push({ message, code });
  }
  throw new Refusal(400, errors);
}

/** Checks the parameters that the row documents; others are ignored. */
export function checkQuery({ query: documented = {} }: Pick<Operation, 'query'>, query: URLSearchParams): void {
  checkFields(z.partial(z.looseObject(documented)), Object.fromEntries(query));
}
