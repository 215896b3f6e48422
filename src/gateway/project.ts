import type { core } from 'zod/mini';
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

/** The documented fields of an operation's answer, or of its items if it is a list. */
export function documentedFields({ answer }: Operation): ReadonlySet<string> {
  return new Set(Object.keys(shapeOf(answer)));
}

function shapeOf(answer: core.$ZodType | null | undefined): core.$ZodShape {
  const def = (answer as core.$ZodTypes | null | undefined)?._zod.def;
  if (def?.type === 'array') return shapeOf(def.element);
  if (def?.type !== 'object') return {};
  return def.shape['results'] ? shapeOf(def.shape['results']) : def.shape;
}
