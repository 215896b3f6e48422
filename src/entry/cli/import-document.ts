import { readFile } from 'node:fs/promises';
import { isPlainObject } from '../../core/json.ts';

export type Json = Readonly<Record<string, unknown>>;

export const objectOf = (value: unknown): Json => (isPlainObject(value) ? value : {});
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const YAML = 'yaml';

/** @throws Error in words where it is neither JSON nor YAML, or yaml is not installed */
async function parsed(text: string): Promise<unknown> {
  try {
    return JSON.parse(text);
  } catch {
    const yaml = await (import(YAML) as Promise<{ parse(yaml: string, options: object): unknown }>).catch(
      (cause: unknown) => {
        throw new Error(`the document is no JSON, and portico import needs ${YAML} for it: npm install ${YAML}`, {
          cause,
        });
      },
    );
    return yaml.parse(text, { merge: true, logLevel: 'error', maxAliasCount: 10_000 });
  }
}

/** What a reference leads to. */
interface Target {
  readonly value: unknown;
  /** The last reference on the way; undefined where there was none. */
  readonly pointer?: string | undefined;
}

const MOST_HOPS = 20;

/** An OpenAPI document and the references in it. */
export class ApiDocument {
  readonly whole: Json;
  /** Each list of parts is merged once: parts of parts would be as many as there are ways to them. */
  readonly #merged = new Map<unknown, Json>();

  constructor(whole: Json) {
    this.whole = whole;
  }

  /** @throws Error in words for what is no OpenAPI 3 document */
  static async read(file: string): Promise<ApiDocument> {
    const whole = objectOf(await parsed(await readFile(file, 'utf8')));
    if (!/^3\.\d/.test(String(whole['openapi']))) throw new Error(`${file} is no OpenAPI 3 document`);
    return new ApiDocument(whole);
  }

  /** The value, or what it refers to: undefined where that is not in the document. */
  target(value: unknown): Target {
    let target: Target = { value };
    for (let hops = 0; isPlainObject(target.value) && typeof target.value['$ref'] === 'string'; hops++) {
      const pointer = target.value['$ref'];
      target = { pointer, value: hops < MOST_HOPS ? this.#at(pointer) : undefined };
    }
    return target;
  }

  /** The object that it is or refers to; an empty one if it is none. */
  object(value: unknown): Json {
    return objectOf(this.target(value).value);
  }

  #at(pointer: string): unknown {
    if (!pointer.startsWith('#/')) return undefined;
    let at: unknown = this.whole;
    for (const part of pointer.slice(2).split('/')) {
      const name = unescaped(part).replaceAll('~1', '/').replaceAll('~0', '~');
      at = typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as Json)[name] : undefined;
    }
    return at;
  }

  /** The schema with all parts of `allOf` in it. */
  merged(schema: unknown): Json {
    const { allOf, ...own } = this.object(schema);
    if (!Array.isArray(allOf)) return own;
    const known = this.#merged.get(this.object(schema));
    if (known) return known;
    this.#merged.set(this.object(schema), own); // for a part that has this one in it
    const parts: readonly Json[] = [...allOf.map((part) => this.merged(part)), own];
    const whole = {
      ...Object.assign({}, ...parts),
      properties: Object.fromEntries(parts.flatMap(({ properties }) => Object.entries(objectOf(properties)))),
      required: [...new Set(parts.flatMap(({ required }) => listOf(required)))],
      description: own['description'] ?? parts[0]?.['description'],
    } as Json;
    this.#merged.set(this.object(schema), whole);
    return whole;
  }

  /** Names of its fields, at any depth, that tell of a secret. */
  secretsIn(schema: unknown, found = new Set<string>(), seen = new Set<unknown>()): Set<string> {
    const { value: at } = this.target(schema);
    if (!isPlainObject(at) || seen.has(at)) return found;
    seen.add(at);
    for (const [name, field] of Object.entries(objectOf(at['properties']))) {
      const said = this.merged(field);
      const ways = [said['anyOf'] ?? said['oneOf'] ?? said['items'] ?? []].flat().map((one) => this.merged(one));
      const isText = ({ type, format }: Json) =>
        format === 'password' || (isSecret(name) && [type ?? 'string'].flat().includes('string'));
      if ([said, ...ways].some(isText)) found.add(name);
      this.secretsIn(field, found, seen);
    }
    for (const part of [at['allOf'], at['anyOf'], at['oneOf'], at['items'], at['additionalProperties']])
      for (const one of [part].flat()) this.secretsIn(one, found, seen);
    return found;
  }
}

const SECRET =
  /(^|_)((auth_?|access_?|api_?)?token|secret|passw(or)?d|pwd|pass(phrase|code)|(api|app|auth|private|secret|access|signing|encryption)_?key|credential|jwt|otp|cvv|cvc)s?$/;
const OF_PAGES = /(page|next|prev|previous|continuation|sync)_?token$/;

function isSecret(name: string): boolean {
  const words = name
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, '_')
    .replaceAll('-', '_')
    .toLowerCase();
  return SECRET.test(words) && !OF_PAGES.test(words);
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
