import * as z from 'zod/mini';
import { type ErrorItem, GatewayError } from '../core/errors.ts';
import { extentOf, MAX_DEPTH, parsedJson } from '../core/json.ts';
import { itemOf, itemsOfIssue } from './issues.ts';
import type { Operation } from './operation.ts';

/** Four times what a documented body can have. Checking ten times as many would block the process for a while. */
export const MAX_VALUES = 1_000;
/** An answer lists no more errors than this. */
const MAX_ITEMS = 50;

/**
 * Checks a client's query and body against the document. What the document does not list is passed on.
 * @throws GatewayError `validation_failed` with one entry per bad parameter or field, `malformed_json`
 */
export function checkInput(
  operation: Pick<Operation, 'query' | 'body'>,
  input: { readonly query: string; readonly body?: string | undefined },
): void {
  const errors = operation.query && input.query !== '' ? queryErrors(operation.query, input.query) : [];
  if (errors.length > 0) throw invalid(errors);
  if (operation.body && (input.body !== undefined || !operation.body.optional)) {
    checkBody(operation.body.schema, input.body ?? '');
  }
}

/** Whether a query may have this parameter. */
export const fitsQuery = ({ query = {} }: Pick<Operation, 'query'>, name: string, value: string): boolean =>
  queryErrors(query, new URLSearchParams([[name, value]]).toString()).length === 0;

function queryErrors(documented: NonNullable<Operation['query']>, query: string): ErrorItem[] {
  const bad = new Map<string, ErrorItem>();
  for (const [name, value] of new URLSearchParams(query)) {
    const schema = Object.hasOwn(documented, name) && !bad.has(name) ? documented[name] : undefined;
    const checked = schema?.safeParse(schema instanceof z.ZodMiniArray ? itemsOf(value, schema) : value);
    if (checked && !checked.success) bad.set(name, itemOf(checked.error.issues[0], name));
  }
  return [...bad.values()];
}

const itemsOf = (value: string, list: z.ZodMiniArray) => (isExploded(list) ? [value] : value.split(','));

/** Whether each item of a list in a query has a parameter of its own. */
export const isExploded = (list: z.ZodMiniType): boolean => z.globalRegistry.get(list)?.['explode'] === true;

/** @throws GatewayError `malformed_json`, `validation_failed` with one entry per bad field */
export function checkBody<T>(schema: z.ZodMiniType<T>, text: string): T {
  const checked = schema.safeParse(parseJson(text));
  if (checked.success) return checked.data;
  throw invalid(checked.error.issues.slice(0, MAX_ITEMS).flatMap(itemsOfIssue));
}

/**
 * Parses a client's JSON.
 * @throws GatewayError `validation_failed` if it has too many values; `malformed_json`
 */
function parseJson(text: string): unknown {
  const { depth, values } = extentOf(text);
  if (depth > MAX_DEPTH) throw GatewayError.of('malformed_json', { detail: 'The body is nested too deeply.' });
  if (values > MAX_VALUES) throw invalid([{ code: 'too_big', message: `more than ${MAX_VALUES} values`, field: null }]);
  const value = parsedJson(text);
  if (value === undefined) throw GatewayError.of('malformed_json');
  return value;
}

/** Lists each error once, up to `MAX_ITEMS`. */
export function invalid(errors: readonly ErrorItem[]): GatewayError {
  const distinct = new Map<string, ErrorItem>();
  for (const error of errors) {
    if (distinct.size === MAX_ITEMS) break;
    distinct.set(`${error.field} ${error.code} ${error.message}`, error);
  }
  return GatewayError.of('validation_failed', { errors: [...distinct.values()] });
}
