import { defineRows } from '../../upstream/operation.ts';
import type { Form, Params } from '../../upstream/path.ts';
import { answerOf, bodyOf, pageIn, Unsaid } from './import-bodies.ts';
import { type ApiDocument, type Json, listOf, objectOf } from './import-document.ts';
import { formOf, queryOf } from './import-parameters.ts';
import type { Schemas } from './import-schemas.ts';
import { block, brief, camel, comment, literal, Names, pascal } from './import-words.ts';

/** An operation of the document. */
interface Asked {
  readonly method: string;
  readonly path: string;
  readonly operation: Json;
  readonly parameters: readonly Json[];
}

/** A row, before it is known which groups have reads. */
interface Printed {
  readonly id: string;
  readonly notes: readonly string[];
  readonly members: readonly string[];
  readonly groups: readonly string[];
  readonly isRead: boolean;
  /** It takes no credential. */
  readonly isOpen: boolean;
}

/** Rows at one path have the same names and forms for its parameters: those of the first. */
interface Place {
  readonly path: string;
  readonly params: Params;
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options', 'trace'];

/** A path with and without its last slash is one. */
const placeOf = (method: string, path: string) =>
  `${method.toUpperCase()} ${path.replace(/\/$/, '').replaceAll(/\{[^{}]*\}/g, '{}')}`;

/** Makes rows of the operations of a document. */
export class Rows {
  /** Names of tags, by their groups. */
  readonly tags = new Map<string, string>();
  readonly #document: ApiDocument;
  readonly #schemas: Schemas;
  readonly #ids: Names;
  readonly #groups = new Names(['everything']);
  readonly #places = new Map<string, Place>();
  readonly #taken: Set<string>;

  /** `own`: names and places of the calls that every gateway has. */
  constructor(document: ApiDocument, schemas: Schemas, own: readonly { id: string; method: string; path: string }[]) {
    this.#document = document;
    this.#schemas = schemas;
    this.#ids = new Names(own.map(({ id }) => id));
    this.#taken = new Set(own.map(({ method, path }) => placeOf(method, path)));
  }

  /** A row for each operation, and a comment in the place of what cannot be one. */
  print(): string[] {
    const all = this.#operations().map((asked) => this.#attempt(asked));
    const reads = all.flatMap((one) => (typeof one === 'object' && one.isRead ? one.groups.slice(0, 1) : []));
    const gone = Object.entries(objectOf(this.#document.whole['paths'])).flatMap(([path, item]) => {
      const { pointer, value } = this.#document.target(item);
      return pointer !== undefined && value === undefined
        ? [comment(`the path ${path} is not here: ${pointer} is not in the document`)]
        : [];
    });
    return [...all.map((one) => (typeof one === 'string' ? one : printed(one, new Set(reads)))), ...gone];
  }

  #operations(): Asked[] {
    return Object.entries(objectOf(this.#document.whole['paths'])).flatMap(([path, given]) => {
      const item = this.#document.object(given);
      return METHODS.filter((method) => method in item).map((method) => {
        const operation = { servers: item['servers'], ...this.#document.object(item[method]) } as Json;
        const all = [item, operation].flatMap((one) => listOf(one['parameters']));
        const parameters = all.map((one) => this.#document.object(one));
        const byName = new Map(parameters.map((one) => [`${String(one['in'])} ${String(one['name'])}`, one]));
        return { method, path, operation, parameters: [...byName.values()] };
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
      if (!(error instanceof Unsaid)) throw error;
      this.#schemas.takeNotes();
      return comment(`${method.toUpperCase()} ${path} is not here: ${error.message}`);
    }
  }

  /** @throws Unsaid for what no row can be */
  #row(id: string, asked: Asked): Printed {
    const { method, path, operation, parameters } = asked;
    const isRead = method === 'get';
    const { at, params } = this.#at(id, asked);
    const body = bodyOf(operation, this.#document);
    if (isRead && body) throw new Unsaid('it is a GET with a body');
    const answer = answerOf(operation, this.#document);
    if (this.#taken.has(placeOf(method, path))) throw new Unsaid('another call is there');
    this.#taken.add(placeOf(method, path));
    const isOpen =
      !isRead && listOf(operation['security'] ?? this.#document.whole['security'] ?? ['a key']).length === 0;
    const query = parameters.filter((one) => one['in'] === 'query');
    const secrets = [answer, body].flatMap((one) => [...this.#document.secretsIn(one?.schema)]);
    const sent = body && this.#schemas.body(body.schema, `${pascal(id)}Body`);
    const members = [
      `at: ${literal(at)},`,
      ...(params.length > 0 ? [`params: { ${params.join(', ')} },`] : []),
      ...(isOpen ? ['credential: "none",'] : []),
      ...(query.length > 0
        ? [
            block(
              'query: {',
              query.map((one) => queryOf(one, this.#document)),
              '},',
            ),
          ]
        : []),
      ...(body ? [`body: { schema: ${sent}${body.isOptional ? ', optional: true' : ''} },`] : []),
      `answer: ${answer.isEmpty ? 'null' : this.#schemas.body(answer.schema, `${pascal(id)}Answer`)},`,
      ...(isRead
        ? pageIn(
            answer,
            query.map(({ name }) => String(name)),
            this.#document,
          )
        : []),
      ...(secrets.length > 0 ? [`secrets: ${literal([...new Set(secrets)])}, // look: guessed by name or format`] : []),
    ];
    const groups = listOf(operation['tags'])
      .filter((tag) => typeof tag === 'string')
      .map((tag) => this.#groupOf(tag));
    if (groups[0] !== undefined) members.push(`tag: tags.${groups[0]},`);
    for (const name of ['summary', 'description'])
      if (brief(operation[name])) members.push(`${name}: ${literal(brief(operation[name]))},`);
    const notes = [...notesOf(asked), ...answer.notes, ...(body?.notes ?? [])].map(comment);
    return { id, notes: [...notes, ...this.#schemas.takeNotes()], members, groups, isRead, isOpen };
  }

  #groupOf(tag: string): string {
    const known = [...this.tags].find(([, name]) => name === tag)?.[0];
    const group = known ?? this.#groups.of(camel(tag), 'tag');
    this.tags.set(group, tag);
    return group;
  }

  /** Method and path, and the forms that are not digits. */
  #at(id: string, { method, path, parameters }: Asked): { at: string; params: string[] } {
    const names = new Names();
    const params: Record<string, Form> = {};
    const own = path.replace(/\/$/, '').replaceAll(/\{([^{}]*)\}/g, (_, said: string) => {
      const name = names.of(said.replaceAll(/\W/g, '_'), 'p', 28);
      const parameter = parameters.find((one) => one['in'] === 'path' && one['name'] === said);
      const { form, unsaid } = formOf(this.#document.merged(parameter?.['schema']));
      if (unsaid !== undefined)
        this.#schemas.notes.push(`${said} is any text that a path may have, not checked by ${unsaid}`);
      params[name] = form;
      return `{${name}}`;
    });
    const place = { path: own, params };
    const first = this.#places.get(placeOf('', path)) ?? place;
    if (JSON.stringify(first) !== JSON.stringify(place))
      this.#schemas.notes.push(`its parameters are those of the first row at its path, not of ${path}`);
    const at = `${method.toUpperCase()} ${first.path}${path.endsWith('/') ? '/' : ''}`;
    try {
      defineRows({ [id]: { at: at as 'GET /', answer: null, params: first.params } });
    } catch (error) {
      throw new Unsaid((error as TypeError).message, { cause: error });
    }
    this.#places.set(placeOf('', path), first);
    const others = Object.entries(first.params).filter(([, form]) => form !== 'digits');
    return { at, params: others.map(([name, form]) => `${name}: ${literal(form)}`) };
  }
}

/** Headers that OpenAPI says elsewhere. */
const ELSEWHERE = /^(accept|content-type|authorization|idempotency-key)$/i;

/** What a row has no words for. */
function notesOf({ method, operation, parameters }: Asked): string[] {
  const { deprecated, callbacks, servers, security } = operation;
  const notes = parameters
    .map((one) => ({ where: String(one['in']), name: String(one['name']), isRequired: one['required'] === true }))
    .filter(({ where, name }) => where === 'cookie' || (where === 'header' && !ELSEWHERE.test(name)))
    .map(({ where, name, isRequired }) => `without its ${where} ${name}${isRequired ? ', which it requires' : ''}`);
  if (deprecated === true) notes.push('deprecated');
  if (callbacks) notes.push(`without its callbacks ${Object.keys(objectOf(callbacks)).join(', ')}`);
  for (const one of listOf(servers)) notes.push(`it is on a server of its own: ${String(objectOf(one)['url'])}`);
  if (method === 'get' && Array.isArray(security) && security.length === 0)
    notes.push('it needs no key, but all that is read here is of an account');
  return notes;
}

function printed({ id, notes, members, groups, isRead, isOpen }: Printed, readable: ReadonlySet<string>): string {
  const [group] = groups;
  const touched = isRead || isOpen ? [] : [...new Set(groups)].filter((one) => readable.has(one));
  const more = [
    ...(isRead && group !== undefined ? [`group: ${literal(group)},`] : []),
    ...(touched.length > 0
      ? [`invalidates: ${literal(touched)}, // look: guessed by tag. Add other groups that it changes`]
      : []),
  ];
  return [...notes, block(`${id}: {`, [...members, ...more], '},')].join('\n');
}
