/** Paths of rows: their parameters, and what the value of each may be (`contract.md` section 2). */

/** The source of a regular expression for each parameter, by name and in the order of the path. */
export type Params = Readonly<Record<string, string>>;

const FORMS: Params = {
  digits: '[0-9]{1,19}',
  slug: '[A-Za-z0-9_-]{1,64}',
  uuid: '[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}',
};

export const DIGITS = FORMS['digits'] as string;

/** Characters that no URL encodes, classes and counts of them, and alternatives: what no slash matches. */
const SOURCE = /^(?:(?:[\w~-]|\\[.dw]|\[(?:[\w.~-]|\\[dw])+\])(?:[+*?]|\{\d+(?:,\d*)?\})?|\|)+$/;

/** What is wrong with a form, after its name; undefined if nothing is. */
export function flawOf(form: string): string | undefined {
  if (Object.hasOwn(FORMS, form)) return undefined;
  if (!SOURCE.test(form))
    return 'has to be `digits`, `slug`, `uuid`, or a pattern of letters, digits, `_`, `-`, `.` and `~`';
  try {
    return formOf(form).test('') ? 'may not be empty' : undefined;
  } catch {
    return 'is no regular expression';
  }
}

/** The parameters of a path; those without a form are digits. */
export const paramsOf = (path: string, forms: Params = {}): Params =>
  Object.fromEntries(namesIn(path).map((name) => [name, FORMS[forms[name] ?? 'digits'] ?? forms[name] ?? '']));

const NAME = /\{(\w+)\}/g;

export const namesIn = (path: string): string[] => Array.from(path.matchAll(NAME), ([, name = '']) => name);

/** Matches a whole value. No value is `.` or `..`, which a URL does not keep. */
export const formOf = (source: string): RegExp => new RegExp(`^${valueOf(source)}$`);

const valueOf = (source: string) => String.raw`(?!\.{1,2}(?:/|$))${grouped(source)}`;

/** The source as a part of a longer one. */
export const grouped = (source: string): string => (source.includes('|') ? `(?:${source})` : source);

/** Matches a path, with or without its last slash. Its groups are the values. */
export function patternOf(path: string, params: Params): RegExp {
  const literal = path.replace(/\/$/, '').replaceAll('.', String.raw`\.`);
  return new RegExp(`^${literal.replaceAll(NAME, (_, name: string) => `(${valueOf(params[name] ?? '')})`)}/?$`);
}

/** The values of a path's parameters as one text: no value has a slash. Undefined for a path without parameters. */
export function joined(names: readonly string[], read: (name: string) => string | undefined): string | undefined {
  return names.length === 0 ? undefined : names.map(read).join('/');
}

/** The path with these values. */
export function pathWith(path: string, id: string | undefined): string {
  if (id === undefined) return path;
  const values = id.split('/');
  return path.replaceAll(NAME, () => values.shift() ?? '');
}
