/** Paths of rows: their parameters, and what the value of each may be (`contract.md` section 2). */

const FORMS = {
  digits: '[0-9]{1,19}',
  slug: '[A-Za-z0-9_-]{1,64}',
  uuid: '[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}',
  /** What no URL encodes. */
  name: '[A-Za-z0-9._~-]{1,128}',
} as const;

/** What the value of a parameter may be. No form matches a slash. */
export type Form = keyof typeof FORMS;

/** The form of each parameter, by name and in the order of the path. */
export type Params = Readonly<Record<string, Form>>;

/** As a regular expression. */
export const sourceOf = (form: Form): string => FORMS[form];

export const isForm = (form: string): form is Form => Object.hasOwn(FORMS, form);

/** The parameters of a path; those without a form are digits. */
export const paramsOf = (path: string, forms: Params = {}): Params =>
  Object.fromEntries(namesIn(path).map((name) => [name, forms[name] ?? 'digits']));

const NAME = /\{(\w+)\}/g;

export const namesIn = (path: string): string[] => Array.from(path.matchAll(NAME), ([, name = '']) => name);

/** Matches a whole value. No value is `.` or `..`, which a URL does not keep. */
export const formOf = (form: Form): RegExp => new RegExp(`^${valueOf(form)}$`);

const valueOf = (form: Form) => String.raw`(?!\.{1,2}(?:/|$))${FORMS[form]}`;

/** Matches a path, with or without its last slash. Its groups are the values. */
export function patternOf(path: string, params: Params): RegExp {
  const literal = path.replace(/\/$/, '').replaceAll('.', String.raw`\.`);
  return new RegExp(`^${literal.replaceAll(NAME, (_, name: string) => `(${valueOf(params[name] ?? 'digits')})`)}/?$`);
}

/** The values of a path's parameters as one text: no value has a slash. Undefined for a path without parameters. */
export function joined(names: readonly string[], read: (name: string) => string | undefined): string | undefined {
  return names.length === 0 ? undefined : names.map(read).join('/');
}

/** What is between the parameters of a path. */
export const partsOf = (path: string): readonly string[] => path.split(/\{\w+\}/);

/** The path with these values. */
export function pathWith({ path, parts }: { path: string; parts: readonly string[] }, id: string | undefined): string {
  if (id === undefined) return path;
  const values = id.split('/');
  return parts.reduce((begun, part, index) => begun + (values[index - 1] ?? '') + part);
}
