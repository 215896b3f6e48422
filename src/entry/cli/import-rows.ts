import { defineRows } from '../../upstream/operation.ts';
import { flawOf } from '../../upstream/path.ts';
import { type ApiDocument, type Json, listOf, objectOf } from './import-document.ts';
import type { Schemas } from './import-schemas.ts';
import { block, brief, camel, comment, keyOf, literal, Names, pascal } from './import-words.ts';

/** A row, before it is known which groups have reads. */
interface Printed {
  readonly id: string;
  readonly notes: readonly string[];
  readonly members: readonly string[];
  readonly isRead: boolean;
  readonly isOpen: boolean;
  readonly groups: readonly string[];
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly operation: Json;
  readonly parameters: readonly Json[];
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace'];

/** Why an operation is no row. */
class Unsaid extends Error {}

/** Makes rows of the operations of a document. */
export class Rows {
  /** Names of tags, by their groups. */
  readonly groups = new Map<string, string>();
  readonly #document: ApiDocument;
  readonly #schemas: Schemas;
  readonly #ids: Names;
  readonly #groupNames = new Names(['everything']);
  /** Rows at one path have the same names and forms for its parameters: those that the first of them says. */
  readonly #places = new Map<string, { readonly at: string; readonly forms: readonly string[] }>();
  readonly #taken = new Set<string>();

  constructor(document: ApiDocument, schemas: Schemas, ids: Names) {
    this.#document = document;
    this.#schemas = schemas;
    this.#ids = ids;
  }

  /** A row for each operation, and a comment in the place of what cannot be one. */
  print(): string[] {
    const all = this.#operations().map((asked) => this.#attempt(asked));
    const readable = new Set(
      all.flatMap((one) => (typeof one === 'object' && one.isRead ? one.groups.slice(0, 1) : [])),
    );
    return all.map((one) => (typeof one === 'string' ? one : printed(one, readable)));
  }

  #operations(): Asked[] {
    return Object.entries(objectOf(this.#document.whole['paths'])).flatMap(([path, given]) => {
      const item = this.#document.object(given);
      return METHODS.filter((method) => method in item).map((method) => {
        const operation = this.#document.object(item[method]);
        const all = [...listOf(item['parameters']), ...listOf(operation['parameters'])].map((one) =>
          this.#document.object(one),
        );
        const parameters = new Map(all.map((one) => [`${String(one['in'])} ${String(one['name'])}`, one]));
        return {
          method,
          path,
          operation: { servers: item['servers'], ...operation },
          parameters: [...parameters.values()],
        };
      });
    });
  }

  #attempt(asked: Asked): Printed | string {
    const { method, path, operation } = asked;
    const own = typeof operation['operationId'] === 'string' ? camel(operation['operationId']) : '';
    const id = this.#ids.of(own || camel(`${method} ${path}`), 'call');
    try {
      return this.#row(id, asked);
    } catch (error) {
      if (!(error instanceof Unsaid || error instanceof TypeError)) throw error;
      this.#schemas.takeNotes();
      return comment(`${method.toUpperCase()} ${path} (${id}) is not here: ${error.message}`);
    }
  }

  /** @throws Unsaid, or the TypeError of `defineRows`, for what no row can be */
  #row(id: string, asked: Asked): Printed {
    const { method, operation, parameters } = asked;
    const isRead = method === 'get';
    const { at, forms } = this.#placeOf(asked);
    const known = JSON.stringify(at.replaceAll(/\{\w+\}/g, '{}').replace(/\/$/, ''));
    defineRows({ [id]: { at: at as 'GET /', answer: null, params: Object.fromEntries(forms) } });
    if (this.#taken.has(known)) throw new Unsaid('another row is at its method and path');
    const body = this.#bodyOf(operation, isRead);
    const answer = this.#answerOf(operation);
    this.#taken.add(known);
    const isOpen = !isRead && listOf(operation['security'] ?? this.#document.whole['security'] ?? [0]).length === 0;
    const query = parameters.filter((one) => one['in'] === 'query').map((one) => this.#query(one));
    const secrets = [...new Set([answer.schema, body?.schema].flatMap((one) => [...this.#document.secretsIn(one)]))];
    const members = [
      `at: ${literal(at)},`,
      ...(forms.length > 0
        ? [
            block(
              'params: {',
              forms.map(([name, form]) => `${name}: ${literal(form)},`),
              '},',
            ),
          ]
        : []),
      ...(isOpen ? ["credential: 'none',"] : []),
      ...(query.length > 0 ? [block('query: {', query, '},')] : []),
      ...(body
        ? [
            `body: { schema: ${this.#schemas.body(body.schema, `${pascal(id)}Body`)}${body.isOptional ? ', optional: true' : ''} },`,
          ]
        : []),
      `answer: ${answer.isEmpty ? 'null' : this.#schemas.body(answer.schema, `${pascal(id)}Answer`)},`,
      ...this.#page(asked, answer),
      ...(secrets.length > 0 ? [`secrets: ${literal(secrets)}, // look: guessed by name and format`] : []),
    ];
    const notes = [...this.#notesOf(asked, isRead), ...answer.notes, ...(body?.notes ?? [])].map(comment);
    const groups = listOf(operation['tags'])
      .filter((tag) => typeof tag === 'string')
      .map((tag) => this.#groupOf(tag));
    if (groups[0] !== undefined) members.push(`tag: tags.${groups[0]},`);
    for (const name of ['summary', 'description'])
      if (brief(operation[name])) members.push(`${name}: ${literal(brief(operation[name]))},`);
    return { id, notes: [...notes, ...this.#schemas.takeNotes()], members, isRead, isOpen, groups };
  }

  #groupOf(tag: string): string {
    const known = [...this.groups].find(([, name]) => name === tag)?.[0];
    const group = known ?? this.#groupNames.of(camel(tag), 'tag');
    this.groups.set(group, tag);
    return group;
  }

  /** What a row has no words for. */
  #notesOf({ operation, parameters }: Asked, isRead: boolean): string[] {
    const notes = parameters
      .filter((one) => one['in'] === 'header' || one['in'] === 'cookie')
      .map(
        (one) =>
          `without its ${String(one['in'])} ${String(one['name'])}${one['required'] === true ? ', which it requires' : ''}`,
      );
    if (operation['deprecated'] === true) notes.push('deprecated');
    if (operation['callbacks'])
      notes.push(`without its callbacks ${Object.keys(objectOf(operation['callbacks'])).join(', ')}`);
    const [server] = listOf(operation['servers']).map((one) => String(objectOf(one)['url']));
    if (server !== undefined) notes.push(`it is on a server of its own: ${server}`);
    const security = operation['security'];
    if (isRead && Array.isArray(security) && security.length === 0)
      notes.push('it needs no key, but all that is read here is of an account');
    return notes;
  }

  /** Method and path with names that a row may have, and the forms that are not digits. */
  #placeOf({ method, path, parameters }: Asked): { at: string; forms: [string, string][] } {
    const place = path.replace(/\/$/, '').replaceAll(/\{[^{}]*\}/g, '{}');
    const names = new Names();
    const made = { forms: [] as string[], at: path };
    made.at = path.replaceAll(/\{([^{}]*)\}/g, (_, said: string) => {
      const parameter = parameters.find(({ in: where, name }) => where === 'path' && name === said);
      made.forms.push(this.#formOf(parameter?.['schema'], said));
      return `{${names.of(said.replaceAll(/\W/g, '_'), 'p', 28)}}`;
    });
    const { at, forms } = this.#places.get(place) ?? made;
    this.#places.set(place, { at, forms });
    const all = Array.from(at.matchAll(/\{(\w+)\}/g), ([, name = ''], index): [string, string] => [
      name,
      forms[index] ?? '',
    ]);
    const own = path.endsWith('/') ? `${at.replace(/\/$/, '')}/` : at.replace(/\/$/, '');
    return { at: `${method.toUpperCase()} ${own}`, forms: all.filter(([, form]) => form !== 'digits') };
  }

  #formOf(given: unknown, name: string): string {
    const { type, format, pattern, enum: values } = this.#document.merged(given);
    if (type === 'integer') return 'digits';
    if (format === 'uuid') return 'uuid';
    const said = Array.isArray(values)
      ? values
          .map(String)
          .join('|')
          .replaceAll('.', String.raw`\.`)
      : pattern;
    const form = typeof said === 'string' ? said.replaceAll(/^\^|\$$/g, '') : '';
    if (form !== '' && flawOf(form) === undefined && !/^(?:digits|slug|uuid)$/.test(form)) return form;
    if (form !== '') this.#schemas.notes.push(`the pattern of ${name} is not checked: ${form}`);
    return String.raw`[\w.~-]+`;
  }

  #query(parameter: Json): string {
    const { name, schema, required, style = 'form', explode = true } = parameter;
    const said = this.#document.merged(schema);
    const description = brief(parameter['description']) || String(name);
    const isList = said['type'] === 'array';
    if (!schema || style !== 'form' || said['type'] === 'object' || said['properties'] || String(name) in {})
      return comment(`the parameter ${literal(name)} is passed on as it is`);
    const item = this.#text(isList ? this.#document.merged(said['items']) : said, description);
    const meta = [...(explode === true ? ['explode: true'] : []), `description: ${literal(description)}`];
    const code = isList ? `documented(z.array(${item}), { ${meta.join(', ')} })` : item;
    return `${keyOf(String(name))}: ${code},${required === true ? ' // required, as the upstream checks' : ''}`;
  }

  /** A schema of what is text in a query. */
  #text({ type, format, minimum, enum: values }: Json, description: string): string {
    const words = literal(description);
    const all =
      type === 'boolean'
        ? ['true', 'false']
        : listOf(values)
            .filter((value) => value !== null)
            .map(String);
    if (all.length > 0) return `documented(z.enum(${literal([...new Set(all)])}), { description: ${words} })`;
    if (type === 'integer') return `integerText(${words}${Number.isInteger(minimum) ? `, ${String(minimum)}` : ''})`;
    return format === 'date-time' ? `timestampText(${words})` : `anyText(${words})`;
  }

  #bodyOf(operation: Json, isRead: boolean) {
    const given = this.#document.object(operation['requestBody']);
    const content = objectOf(given['content']);
    const types = Object.keys(content);
    if (types.length === 0) return undefined;
    const json = types.find((type) => isJson(type));
    if (isRead) throw new Unsaid('it is a GET with a body');
    if (json === undefined) throw new Unsaid(`its body is ${types.join(', ')}`);
    const others = types.filter((type) => type !== json);
    return {
      schema: objectOf(content[json])['schema'],
      isOptional: given['required'] !== true,
      notes: [
        ...(others.length > 0 ? [`its body may also be ${others.join(', ')}`] : []),
        ...(/^(application\/json|\*\/\*)/.test(json) ? [] : [`its body is ${json}, and is sent as application/json`]),
      ],
    };
  }

  #answerOf(operation: Json) {
    const responses = objectOf(operation['responses']);
    const good = Object.keys(responses).filter((status) => /^2(\d\d|XX)$/i.test(status));
    const statuses = good.length > 0 ? good : Object.keys(responses).filter((status) => status === 'default');
    const all = statuses.map((status) => {
      const { content, headers } = this.#document.object(responses[status]);
      return { status, types: Object.keys(objectOf(content)), content: objectOf(content), headers: objectOf(headers) };
    });
    if (all.length === 0)
      throw new Unsaid(`it has no good answer, only ${Object.keys(responses).join(', ') || 'none'}`);
    const one = all.find(({ types }) => types.some(isJson)) ?? all.find(({ types }) => types.length === 0);
    if (!one) throw new Unsaid(`its answer is ${all.flatMap(({ types }) => types).join(', ')}`);
    const json = one.types.find(isJson);
    const notes = all
      .filter(({ types, status }) => status !== one.status && types.length > 0)
      .map(({ status }) => `its answer ${status} may be another`);
    const others = one.types.filter((type) => type !== json);
    if (others.length > 0) notes.push(`its answer may also be ${others.join(', ')}: JSON is asked for`);
    if (one.status === 'default') notes.push('its good answer is said to be the default one');
    const schema = json === undefined ? undefined : objectOf(one.content[json])['schema'];
    return { schema, isEmpty: json === undefined, headers: one.headers, notes };
  }

  /** The page that the answer is by the usual names. */
  #page({ method, parameters }: Asked, { schema, headers }: { schema: unknown; headers: Json }): string[] {
    const at = (from: Json, name: string) => this.#document.merged(objectOf(from['properties'])[name]);
    const top = this.#document.merged(schema);
    const isText = (one: Json) => [one['type']].flat().includes('string') || one['anyOf'] !== undefined;
    const isList = (one: Json) => [one['type']].flat().includes('array');
    const usual: readonly (readonly [boolean, string])[] = [
      [isList(top) && Object.keys(headers).some((name) => /^link$/i.test(name)), "items: ''"],
      [isList(at(top, 'results')) && isText(at(top, 'next')), "items: '/results', next: '/next', links: ['/previous']"],
      [
        isList(at(top, 'data')) && isText(at(at(top, 'links'), 'next')),
        "items: '/data', next: '/links/next', links: ['/links/prev', '/links/first', '/links/last', '/links/self']",
      ],
      [isList(at(top, 'items')) && isText(at(top, 'nextPageToken')), "items: '/items'"],
    ];
    const found = method === 'get' ? usual.find(([fits]) => fits)?.[1] : undefined;
    const size = parameters.find((one) => one['in'] === 'query' && SIZE.test(String(one['name'])))?.['name'];
    return found === undefined ? [] : [`page: { ${found}${size === undefined ? '' : `, size: ${literal(size)}`} },`];
  }
}

const SIZE = /^(page_?size|per_?page|limit|max_?results)$/i;

const isJson = (type: string) => /^(application\/([\w.+-]+\+)?json|\*\/\*)\s*(;|$)/i.test(type);

function printed({ id, notes, members, isRead, isOpen, groups }: Printed, readable: ReadonlySet<string>): string {
  const [group] = groups;
  const touched = groups.filter((one) => readable.has(one));
  const more = isRead
    ? group === undefined
      ? []
      : [`group: ${literal(group)},`]
    : touched.length > 0 && !isOpen
      ? [`invalidates: ${literal([...new Set(touched)])},`]
      : [];
  return [...notes, block(`${id}: {`, [...members, ...more], '},')].join('\n');
}
