import { type ApiDocument, type Json, objectOf } from './import-document.ts';
import { literal } from './import-words.ts';

/** Why an operation is no row. */
export class Unsaid extends Error {}

const isJson = (type: string) => /^(application\/([\w.+-]+\+)?json|\*\/\*)\s*(;|$)/i.test(type);

/** What an operation sends. Undefined: nothing. */
export function bodyOf({ requestBody }: Json, document: ApiDocument) {
  const { value, pointer } = document.target(requestBody);
  if (pointer !== undefined && value === undefined)
    throw new Unsaid(`its body is ${pointer}, which is not in the document`);
  const { content: given, required } = objectOf(value);
  const content = objectOf(given);
  const types = Object.keys(content);
  if (types.length === 0) return undefined;
  const json = types.find(isJson);
  if (json === undefined) throw new Unsaid(`its body is ${types.join(', ')}`);
  const others = types.filter((type) => type !== json);
  const notes = others.length > 0 ? [`its body may also be ${others.join(', ')}`] : [];
  if (!/^(application\/json|\*)/i.test(json)) notes.push(`its body is ${json}, and is sent as application/json`);
  return { schema: objectOf(content[json])['schema'], isOptional: required !== true, notes };
}

/** What it answers with when all is well. */
export function answerOf({ responses: given }: Json, document: ApiDocument) {
  const responses = objectOf(given);
  const statuses = Object.keys(responses);
  const good = statuses.filter((status) => /^2(\d\d|XX)$/i.test(status));
  const wanted = good.length > 0 ? good : statuses.filter((status) => status === 'default');
  const all = wanted.map((status) => {
    const { content, headers } = document.object(responses[status]);
    return { status, types: Object.keys(objectOf(content)), content: objectOf(content), headers: objectOf(headers) };
  });
  const elsewhere = statuses.find((status) => status.startsWith('3') && good.length === 0);
  if (elsewhere !== undefined) throw new Unsaid(`its answer is ${elsewhere}, which leads elsewhere`);
  const one = all.find(({ types }) => types.some(isJson)) ?? all.find(({ types }) => types.length === 0);
  if (!one && all.length > 0) throw new Unsaid(`its answer is ${all.flatMap(({ types }) => types).join(', ')}`);
  const json = one?.types.find(isJson);
  const others = one?.types.filter((type) => type !== json) ?? [];
  const notes = all
    .filter(({ types, status }) => status !== one?.status && types.length > 0)
    .map(({ status }) => `its answer ${status} may be another`);
  if (others.length > 0) notes.push(`its answer may also be ${others.join(', ')}: JSON is asked for`);
  if (good.length === 0) notes.push(`its good answer is not said, ${one ? 'this is the default' : 'only errors'}`);
  const schema = json === undefined ? undefined : objectOf(one?.content[json])['schema'];
  return { schema, isEmpty: json === undefined, headers: one?.headers ?? {}, notes };
}

const is = (type: string, one: Json) => [one['type']].flat().includes(type);

/** A list, or null, and nothing else. */
const isList = (one: Json) =>
  is('array', one) &&
  [one['type']].flat().every((type) => type === 'array' || type === 'null') &&
  !['enum', 'const', 'oneOf', 'anyOf'].some((word) => word in one);

/** What a pointer to a page's list may name. */
const isPlainName = (name: string) => /^(?!\d+$)[^/~]+$/.test(name) && !(name in {});

const SIZE = /^(page_?size|per_?page|limit|max_?results)$/i;

const propertiesOf = (one: Json) => objectOf(one['properties']);
const isText = (one: Json) => is('string', one) || one['anyOf'] !== undefined;

/** Links to other pages, by the usual names. */
const OTHERS = ['previous', 'prev', 'first', 'last', 'self'];

/** The page that an answer is by the usual names; none of other names. `query`: names of parameters. */
export function pageIn(
  { schema, headers, notes }: { readonly schema: unknown; readonly headers: Json; readonly notes: string[] },
  query: readonly string[],
  document: ApiDocument,
): string[] {
  const at = (from: Json, name: string) => document.merged(propertiesOf(from)[name]);
  const top = document.merged(schema);
  if (
    ['enum', 'const'].some((word) => word in top) ||
    [top['type']].flat().filter((type) => type !== 'null').length > 1
  )
    return [];
  const size = query.find((name) => SIZE.test(name));
  const lists = Object.keys(propertiesOf(top)).filter((name) => isPlainName(name) && isList(at(top, name)));
  const list = lists.find((name) => /^(results|data|items)$/.test(name)) ?? (lists.length === 1 ? lists[0] : undefined);
  const hasHeader = Object.keys(headers).some((name) => /^link$/i.test(name));
  const links = at(top, 'links');
  const next = at(top, 'next');
  // A text without a format may be a token, which has to stay as it is.
  const isLink = next['format'] === 'uri' || list === 'results';
  let members: Json | undefined;
  if (is('array', top)) members = hasHeader && isList(top) ? { items: '' } : undefined;
  else if (list !== undefined && isText(at(links, 'next')))
    members = { items: `/${list}`, next: '/links/next', ...linksIn(propertiesOf(links), '/links/') };
  else if (list !== undefined && isText(next) && isLink)
    members = { items: `/${list}`, next: '/next', ...linksIn(propertiesOf(top), '/') };
  else if (list !== undefined && is('string', at(top, 'nextPageToken'))) members = { items: `/${list}` };
  else if (list !== undefined && isText(next)) notes.push('`next` may be a link: then give the row a page');
  if (!members) return [];
  const page = Object.entries({ ...members, ...(size !== undefined && { size }) });
  const isSure = !('next' in members) || [next, at(links, 'next')].some(({ format }) => format === 'uri');
  const line = `page: { ${page.map(([name, value]) => `${name}: ${literal(value)}`).join(', ')} },`;
  return [isSure ? line : `${line} // look: are these links?`];
}

function linksIn(properties: Json, before: string): { links?: string[] } {
  const links = OTHERS.filter((name) => Object.hasOwn(properties, name)).map((name) => before + name);
  return links.length > 0 ? { links } : {};
}
