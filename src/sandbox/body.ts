import type { ZodType } from 'zod';
import { Refusal } from './errors.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** Reads a JSON object as Django REST Framework does, refusals included. An empty body is an empty object. */
export async function readBody(request: Request): Promise<JsonObject> {
  const text = await request.text();
  if (text === '') return {};
  const type = request.headers.get('Content-Type') ?? '';
  if (!/^application\/json\b/i.test(type)) {
    throw new Refusal(415, { detail: `Unsupported media type "${type}" in request.` });
  }
  return asObject(parse(text));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, { detail: 'JSON parse error - Expecting value: line 1 column 1 (char 0)' });
  }
}

function asObject(value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw new Refusal(400, { non_field_errors: ['Invalid data. Expected a dictionary.'] });
}

/** Checks the fields of a body and refuses the bad ones as `{"field":["text"]}`. */
export function checkBody<T>(schema: ZodType<T>, body: JsonObject): T {
  const checked = schema.safeParse(body);
  if (checked.success) return checked.data;
  const errors: Record<string, string[]> = {};
  for (const issue of checked.error.issues) {
    const field = String(issue.path[0] ?? 'non_field_errors');
    (errors[field] ??= []).push(field in body ? issue.message : 'This field is required.');
  }
  throw new Refusal(400, errors);
}
