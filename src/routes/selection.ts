import type { ErrorItem, GatewayError } from '../core/errors.ts';
import { cut, itemsOf, memberOf, membersOf } from '../core/json.ts';
import type { Composition } from '../gateway/compose.ts';
import { PAGE_SIZE, type PageSizes, partsOf, type Plan } from '../gateway/plan.ts';
import { COMPUTED, type Overview } from '../gateway/sections.ts';
import type { Preferences } from '../middleware/prefer.ts';
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
const LIKE_OURS = /^(section|field|page_?size)/i;

/**
 * Reads `?sections=a,b`, `?fields[section]=x,y` and `?page_size[section]=5`. The error is `validation_failed`, for a section or
 * field that does not exist and for a bad size; it is returned, not thrown, so that the request is counted before it is
 * refused.
 */
export function compositionsOf({ overview, partsFor }: Plan) {
  const choices = choicesOf(overview);
  const all = sectionNames(overview);
  const wholeOf = (parts: Composition['parts'], strict: boolean) => ({
    overview,
    wanted: all,
    parts,
    fields: NONE,
    strict,
  });
  const usual = wholeOf(partsFor(undefined), false);
  /** `text`: that of the path's parameter. */
  return (query: string, { isStrict }: Preferences, text?: string): CompositionRequest => {
    if (query === '') {
      const parts = text === undefined ? usual.parts : partsFor(text);
      return parts === usual.parts && !isStrict ? usual : wholeOf(parts, isStrict);
    }
    const { asked: fields, sizes, errors } = askedIn(query, choices);
    const sections = fields.get('sections');
    const error = errors.length > 0 ? invalid(errors) : undefined;
    const wanted = all.filter((name) => !error && (sections?.has(name) ?? true));
    const parts = partsOf(wanted, partsFor(text, sizes.size > 0 ? sizes : undefined));
    return { overview, wanted, parts, fields, strict: isStrict, error };
  };
}

const NONE: CompositionRequest['fields'] = new Map();

/** In the order in which they are answered. */
const sectionNames = ({ sections, compute }: Overview) => [...Object.keys(sections), ...(compute ? [COMPUTED] : [])];

/** The names that each parameter of ours lists, the sizes of pages, and what is wrong with them. */
function askedIn(query: string, { names: choices, sized }: Choices) {
  const asked = new Map<string, Set<string>>();
  const sizes = new Map<string, string>();
  const errors: ErrorItem[] = [];
  const isUnknown = (name: string, field: string) =>
    errors.push({ code: 'unknown_name', message: `${JSON.stringify(name.slice(0, 64))} does not exist here`, field });
  for (const [parameter, value] of new URLSearchParams(query)) {
    const own = choices.get(parameter);
    const section = sized.get(parameter);
    if (section !== undefined && isSize(value)) sizes.set(section, value);
    else if (section !== undefined) errors.push({ ...BAD_SIZE, field: parameter });
    else if (!own && LIKE_OURS.test(parameter)) isUnknown(parameter, parameter);
    if (!own) continue;
    const names = value.split(',').map((name) => name.trim());
    for (const name of names) if (!own.has(name)) isUnknown(name, parameter);
    asked.set(
      parameter,
      names.reduce((all, name) => all.add(name), asked.get(parameter) ?? new Set<string>()),
    );
  }
  return { asked, sizes: sizes as PageSizes, errors };
}

const isSize = (text: string) => /^(?:[1-9]\d?|100)$/.test(text);

const BAD_SIZE = { code: 'invalid_format', message: 'expected an integer from 1 to 100' };

interface Choices {
  /** What each parameter chooses from: sections, or fields of one. */
  readonly names: ReadonlyMap<string, ReadonlySet<string>>;
  /** Parameters for how long a page is to be, and of which section. */
  readonly sized: ReadonlyMap<string, string>;
}

/** What the query of an overview may ask for. */
export function choicesOf(overview: Overview): Choices {
  const sections = Object.entries(overview.sections);
  const fields = sections.map(([name, { read }]) => [`fields[${name}]`, documentedFields(read)] as const);
  const pages = sections.filter(([, { read }]) => read.paged && read.query && PAGE_SIZE in read.query);
  return {
    names: new Map([['sections', new Set(sectionNames(overview))], ...fields.filter(([, names]) => names.size > 0)]),
    sized: new Map(pages.map(([name]) => [`${PAGE_SIZE}[${name}]`, name])),
  };
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
function documentedFields({ answer }: Operation): ReadonlySet<string> {
  return new Set(Object.keys(shapeOf(answer)));
}

function shapeOf(answer: core.$ZodType | null | undefined): core.$ZodShape {
  const def = (answer as core.$ZodTypes | null | undefined)?._zod.def;
  if (def?.type === 'array') return shapeOf(def.element);
  if (def?.type !== 'object') return {};
  return def.shape['results'] ? shapeOf(def.shape['results']) : def.shape;
}
