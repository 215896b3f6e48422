import type { ErrorItem, GatewayError } from '../core/errors.ts';
import { cut, itemsOf, memberOf, membersOf } from '../core/json.ts';
import type { Composition } from '../gateway/compose.ts';
import { partsOf, type Plan } from '../gateway/plan.ts';
import { COMPUTED, type Overview } from '../gateway/sections.ts';
import { invalid } from '../upstream/input.ts';
import type { Operation } from '../upstream/operation.ts';
import type { core } from 'zod/mini';

/** What a client asked for, with the fields that it wants of each section; or nothing, and why it is refused. */
export interface CompositionRequest extends Composition {
  /** By `fields[section]`. */
  readonly fields: ReadonlyMap<string, ReadonlySet<string>>;
  readonly error?: GatewayError | undefined;
}

/** Misspelt parameters are refused: ignoring them would cost calls that the client meant to save. */
const LIKE_OURS = /^(section|field)/i;
const STRICT = /(^|[,;]\s*)handling\s*=\s*"?strict"?\s*($|[,;])/i;

/**
 * Reads `?sections=a,b`, `?fields[section]=x,y` and `Prefer: handling=strict`. The error is `validation_failed`, for a
 * section or field that does not exist; it is returned, not thrown, so that the request is counted before it is refused.
 */
export function compositionsOf({ overview, computed, partsFor }: Plan) {
  const choices = choicesOf(overview);
  const all = sectionNames(overview);
  const wholeOf = (parts: Composition['parts']) => ({
    overview,
    computed,
    wanted: all,
    parts,
    fields: NONE,
    strict: false,
  });
  const usual = wholeOf(partsFor(undefined));
  /** `text`: that of the path's parameter. */
  return (query: string, prefer = '', text?: string): CompositionRequest => {
    const parts = text === undefined ? usual.parts : partsFor(text);
    if (query === '' && prefer === '') return parts === usual.parts ? usual : wholeOf(parts);
    const { asked: fields, errors } = askedIn(query, choices);
    const sections = fields.get('sections');
    const error = errors.length > 0 ? invalid(errors) : undefined;
    const wanted = all.filter((name) => !error && (sections?.has(name) ?? true));
    return { overview, computed, wanted, parts: partsOf(wanted, parts), fields, strict: STRICT.test(prefer), error };
  };
}

const NONE: CompositionRequest['fields'] = new Map();

/** In the order in which they are answered. */
const sectionNames = ({ sections, compute }: Overview) => [...Object.keys(sections), ...(compute ? [COMPUTED] : [])];

/** The names that each parameter of ours lists, and what is wrong with them. */
function askedIn(query: string, choices: ReturnType<typeof choicesOf>) {
  const asked = new Map<string, Set<string>>();
  const errors: ErrorItem[] = [];
  const isUnknown = (name: string, field: string) =>
    errors.push({ code: 'unknown_name', message: `${JSON.stringify(name.slice(0, 64))} does not exist here`, field });
  for (const [parameter, value] of new URLSearchParams(query)) {
    const own = choices.get(parameter);
    if (!own && LIKE_OURS.test(parameter)) isUnknown(parameter, parameter);
    if (!own) continue;
    const names = value.split(',').map((name) => name.trim());
    for (const name of names) if (!own.has(name)) isUnknown(name, parameter);
    asked.set(
      parameter,
      names.reduce((all, name) => all.add(name), asked.get(parameter) ?? new Set<string>()),
    );
  }
  return { asked, errors };
}

/** What each parameter of the query chooses from: sections, or fields of one. */
export function choicesOf(overview: Overview): ReadonlyMap<string, ReadonlySet<string>> {
  const fields = Object.entries(overview.sections).map(
    ([name, { read }]) => [`fields[${name}]`, documentedFields(read)] as const,
  );
  return new Map([['sections', new Set(sectionNames(overview))], ...fields.filter(([, names]) => names.size > 0)]);
}

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
