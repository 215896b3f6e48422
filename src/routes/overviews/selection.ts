import type { ErrorItem, GatewayError } from '../../core/errors.ts';
import { cut, itemsOf, memberOf, membersOf } from '../../core/json.ts';
import { type Composition, sectionsFor } from '../../gateway/compose.ts';
import type { Overview } from '../../gateway/overviews.ts';
import { invalid } from '../../upstream/input.ts';
import type { Operation } from '../../upstream/operation.ts';
import type { core } from 'zod/mini';

/** What a client asked for, with the fields that it wants of each section; or nothing, and why it is refused. */
export interface CompositionRequest extends Composition {
  readonly fields: ReadonlyMap<string, ReadonlySet<string>>;
  readonly error?: GatewayError | undefined;
}

const FIELDS = /^fields\[([^]*)\]$/;
/** Misspelt parameters are refused: ignoring them would cost calls that the client meant to save. */
const LIKE_OURS = /^(section|field)/i;
const STRICT = /(^|[,;]\s*)handling\s*=\s*"?strict"?\s*($|[,;])/i;

/**
 * Reads `?sections=a,b`, `?fields[section]=x,y` and `Prefer: handling=strict`. The error is `validation_failed`, for a
 * section or field that does not exist; it is returned, not thrown, so that the request is counted before it is refused.
 */
export function compositionsOf(overview: Overview): (query: string, prefer: string | undefined) => CompositionRequest {
  const all = Object.keys(overview.sections);
  const whole = {
    overview,
    wanted: all,
    sections: Object.entries(overview.sections),
    fields: new Map(),
    strict: false,
  };
  return (query, prefer = '') => (query === '' && prefer === '' ? whole : compositionOf(overview, query, prefer));
}

function compositionOf(overview: Overview, query: string, prefer: string): CompositionRequest {
  const all = Object.keys(overview.sections);
  const errors: ErrorItem[] = [];
  const asked = new Set<string>();
  const fields = new Map<string, ReadonlySet<string>>();
  for (const [name, value] of new URLSearchParams(query)) {
    const section = FIELDS.exec(name)?.[1];
    if (name === 'sections') for (const wanted of namesIn(value)) asked.add(wanted);
    if (name === 'sections') errors.push(...unknownIn(namesIn(value), all, name));
    if (section === undefined && name !== 'sections' && LIKE_OURS.test(name)) errors.push(unknown(name, name));
    if (section === undefined) continue;
    const own = fieldsOf(overview, section);
    errors.push(...(own ? unknownIn(namesIn(value), own, name) : [unknown(section, name)]));
    fields.set(section, new Set([...(fields.get(section) ?? []), ...namesIn(value)]));
  }
  const error = errors.length > 0 ? invalid(errors) : undefined;
  const wanted = all.filter((name) => !error && (asked.size === 0 || asked.has(name)));
  return { overview, wanted, sections: sectionsFor(wanted, overview), fields, strict: STRICT.test(prefer), error };
}

const namesIn = (list: string) => [...new Set(list.split(',').map((name) => name.trim()))];

function fieldsOf({ sections }: Overview, name: string): string[] | undefined {
  const section = Object.hasOwn(sections, name) ? sections[name] : undefined;
  return section && [...documentedFields(section.operation)];
}

function unknownIn(names: readonly string[], own: readonly string[], field: string): ErrorItem[] {
  return names.filter((name) => !own.includes(name)).map((name) => unknown(name, field));
}

const unknown = (name: string, field: string): ErrorItem => ({
  code: 'unknown_name',
  message: `${JSON.stringify(name.slice(0, 64))} does not exist here`,
  field,
});

/** Trims a section to some fields: the object, every item of an array, every item of a page. Values stay as they are. */
export function project(operation: Operation, text: string, fields: ReadonlySet<string>): string {
  const results = operation.paged ? memberOf(text, 'results') : undefined;
  if (!results) return trim(text, fields);
  return text.slice(0, results.start) + trim(cut(text, results), fields) + text.slice(results.end);
}

function trim(text: string, fields: ReadonlySet<string>): string {
  if (/^\s*\[/.test(text))
    return `[${itemsOf(text)
      .map((item) => trim(cut(text, item), fields))
      .join(',')}]`;
  if (!/^\s*\{/.test(text)) return text;
  const kept = membersOf(text).filter(({ name }) => fields.has(name));
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
