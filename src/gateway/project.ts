import { cut, itemsOf, memberOf, membersOf } from '../core/json.ts';
import type { Operation } from '../upstream/operation.ts';

/** Trims a section to some fields: the object, every item of an array, every item of a page. Values stay as they are. */
export function project(operation: Operation, text: string, fields: ReadonlySet<string>): string {
  const results = operation.paged ? memberOf(text, 'results') : undefined;
  if (!results) return trim(text, fields);
  return text.slice(0, results.start) + trim(cut(text, results), fields) + text.slice(results.end);
}

function trim(text: string, fields: ReadonlySet<string>): string {
  if (/^\s*\[/.test(text)) return `[${Array.from(itemsOf(text), (item) => trim(cut(text, item), fields)).join(',')}]`;
  if (!/^\s*\{/.test(text)) return text;
  const kept = [...membersOf(text)].filter(({ name }) => fields.has(name));
  return `{${kept.map((member) => `${JSON.stringify(member.name)}:${cut(text, member)}`).join(',')}}`;
}

/** The documented fields of what an operation answers: of the items, where it is a list. */
export function documentedFields({ answer }: Operation): ReadonlySet<string> {
  const schema = unwrapped(answer);
  return new Set(schema && 'shape' in schema ? Object.keys(schema.shape as object) : []);
}

function unwrapped(answer: Operation['answer']): Operation['answer'] {
  if (!answer) return null;
  if ('element' in answer) return unwrapped(answer.element as Operation['answer']);
  const results = 'shape' in answer ? (answer.shape as Record<string, Operation['answer']>)['results'] : undefined;
  return results ? unwrapped(results) : answer;
}
