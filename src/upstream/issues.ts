import type { core } from 'zod/mini';
import type { ErrorItem } from '../core/errors.ts';

/** One error for each field, also if zod reports several fields in one issue. The sandbox uses the same words. */
export function itemsOfIssue(issue: core.$ZodIssue): ErrorItem[] {
  if (issue.code !== 'unrecognized_keys') return [itemOf(issue, issue.path.join('.') || null)];
  return issue.keys.map((key) => itemOf({ ...issue, message: 'unknown field' }, [...issue.path, key].join('.')));
}

export function itemOf(issue: core.$ZodIssue | undefined, field: string | null): ErrorItem {
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

/** British, since American English has a comma before `or`. */
const OR = new Intl.ListFormat('en-GB', { type: 'disjunction' });

/** An issue in our words. Messages that schemas bring themselves stay as they are. */
function messageOf(issue: core.$ZodIssue): string {
  const { code, message } = issue;
  if (!/^(Invalid|Too) /.test(message)) return message;
  if (code === 'invalid_type')
    return message.endsWith('received undefined')
      ? 'is missing'
      : `expected ${TYPES[issue.expected] ?? issue.expected}`;
  if (code === 'invalid_value') return `expected ${OR.format(issue.values.map(String))}`;
  if ('origin' in issue && issue.origin === 'number' && code === 'too_small')
    return `expected ${issue.minimum} or more`;
  const unit = 'origin' in issue && issue.origin === 'array' ? 'items' : 'characters';
  if (code === 'too_small')
    return issue.minimum === 1 ? 'must not be empty' : `expected at least ${issue.minimum} ${unit}`;
  if (code === 'too_big') return `expected at most ${issue.maximum} ${unit}`;
  return code === 'invalid_format' && issue.format === 'email' ? 'expected an e-mail address' : 'cannot be used';
}
