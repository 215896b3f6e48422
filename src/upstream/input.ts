import type { core, ZodMiniType } from 'zod/mini';
import { canonical } from '../core/canonical.ts';
import { type ErrorItem, GatewayError } from '../core/errors.ts';
import { extentOf, MAX_DEPTH } from '../core/json.ts';
import type { Operation } from './operation.ts';
import type { OperationInput } from './request.ts';

/** Four times what a documented body can have. Checking ten times as many would block the process for a while. */
const MAX_VALUES = 1_000;
/** Errors that one answer lists. */
const MAX_ITEMS = 50;

/**
 * Checks a client's query and body against the document. What the document does not list is passed on.
 * @throws GatewayError `validation_failed` with one entry per bad parameter or field, `malformed_json`
 */
export function checkInput(operation: Operation, input: OperationInput): void {
  const errors = operation.query && input.query !== '' ? queryErrors(operation.query, input.query) : [];
  if (errors.length > 0) throw invalid(errors);
  if (operation.body && (input.body !== undefined || !operation.body.optional)) {
    checkBody(operation.body.schema, input.body ?? '');
  }
}

function queryErrors(documented: NonNullable<Operation['query']>, query: string): ErrorItem[] {
  const bad = new Map<string, ErrorItem>();
  for (const [name, value] of new URLSearchParams(query)) {
    const schema = Object.hasOwn(documented, name) && !bad.has(name) ? documented[name] : undefined;
    const checked = schema?.safeParse(value);
    if (checked && !checked.success) bad.set(name, itemOf(checked.error.issues[0], name));
  }
  return [...bad.values()];
}

/** @throws GatewayError `malformed_json`, `validation_failed` with one entry per bad field */
export function checkBody<T>(schema: ZodMiniType<T>, text: string): T {
  const checked = schema.safeParse(parseJson(text));
  if (checked.success) return checked.data;
  throw invalid(checked.error.issues.slice(0, MAX_ITEMS).flatMap(itemsOfIssue));
}

/**
 * Parses a client's JSON.
 * @throws GatewayError `validation_failed` if it has too many values; `malformed_json`, also for a duplicate name in an
 *   object: the upstream might read the other member than the one that was checked
 */
function parseJson(text: string): unknown {
  const { depth, values } = extentOf(text);
  if (depth > MAX_DEPTH) throw GatewayError.of('malformed_json', { detail: 'The body is nested too deeply.' });
  if (values > MAX_VALUES) throw invalid([{ code: 'too_big', message: `more than ${MAX_VALUES} values`, field: null }]);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw GatewayError.of('malformed_json');
  }
  if (canonical(text).hasDuplicateNames) {
    throw GatewayError.of('malformed_json', { detail: 'A name stands twice in the body.' });
  }
  return value;
}

/** One entry for each field, also if zod reports several in one issue. */
function itemsOfIssue(issue: core.$ZodIssue): ErrorItem[] {
  if (issue.code !== 'unrecognized_keys') return [itemOf(issue, issue.path.join('.') || null)];
  return issue.keys
    .slice(0, MAX_ITEMS)
    .map((key) => itemOf({ ...issue, message: 'unknown field' }, [...issue.path, key].join('.')));
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

function itemOf(issue: core.$ZodIssue | undefined, field: string | null): ErrorItem {
  return { code: issue?.code ?? 'invalid', message: issue ? messageOf(issue) : 'cannot be used', field };
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

/** An issue in our words. Messages that schemas bring themselves stay as they are. */
function messageOf(issue: core.$ZodIssue): string {
  const { code, message } = issue;
  if (!/^(Invalid|Too) /.test(message)) return message;
  if (code === 'invalid_type')
    return message.endsWith('received undefined')
      ? 'is missing'
      : `expected ${TYPES[issue.expected] ?? issue.expected}`;
  if (code === 'invalid_value')
    return `expected ${issue.values
      .map(String)
      .join(', ')
      .replace(/, ([^,]*)$/, ' or $1')}`;
  const unit = 'origin' in issue && issue.origin === 'array' ? 'items' : 'characters';
  if (code === 'too_small')
    return issue.minimum === 1 ? 'must not be empty' : `expected at least ${issue.minimum} ${unit}`;
  if (code === 'too_big') return `expected at most ${issue.maximum} ${unit}`;
  return code === 'invalid_format' && issue.format === 'email' ? 'expected an e-mail address' : 'cannot be used';
}
