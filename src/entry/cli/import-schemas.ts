import { type ApiDocument, type Json, listOf, objectOf } from './import-document.ts';
import { block, brief, comment, keyOf, literal, type Names, pascal } from './import-words.ts';

/** Keywords that say more than a schema here does. */
const UNSAID = ['not', 'if', 'patternProperties', 'prefixItems', 'contains', 'dependentRequired', 'dependentSchemas'];

/** Keywords that check nothing. */
const TELLS = /^(title|description|default|examples?|readOnly|writeOnly|deprecated|externalDocs|xml|x-.*)$/;

const isScalar = (value: unknown) => typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);

/** Prints schemas as code. Those that have a name in the document become constants, each after those that it names. */
export class Schemas {
  readonly constants: string[] = [];
  /** What the schemas printed since could not say. */
  notes: string[] = [];
  readonly #document: ApiDocument;
  readonly #names: Names;
  /** Lists of parts that are being printed. */
  readonly #within = new Set<unknown>();
  /** By their pointers. One that is not whole is being printed: what names it then has itself in it. */
  readonly #known = new Map<string, { readonly name: string; isWhole: boolean }>();

  constructor(document: ApiDocument, names: Names) {
    this.#document = document;
    this.#names = names;
  }

  takeNotes(): string[] {
    return this.notes.splice(0).map(comment);
  }

  /** A schema with a name: what the document names, or else one that is called so. */
  body(schema: unknown, name: string): string {
    const { pointer, value } = this.#document.target(schema);
    const isNamed = pointer !== undefined && value !== undefined && objectOf(schema)['nullable'] !== true;
    return isNamed ? this.#constant(pointer, value) : this.#named(schema, this.#names.of(name, 'Body'));
  }

  #named(schema: unknown, name: string): string {
    const code = this.#bare(schema, name);
    const description = brief(this.#document.object(schema)['description']);
    const [, shape] = /^z\.looseObject\((.*)\)$/s.exec(code) ?? [];
    const more = description && `, ${literal(description)}`;
    return shape === undefined
      ? documented(code, { id: name, description })
      : `resource(${literal(name)}, ${shape}${more})`;
  }

  /** `told`: words for what has no description. */
  #code(schema: unknown, told: string): string {
    const { pointer, value } = this.#document.target(schema);
    const isReference = pointer !== undefined && objectOf(schema)['nullable'] !== true;
    if (isReference && value !== undefined) return this.#constant(pointer, value);
    if (isReference) this.notes.push(`${told}: ${pointer} is not in the document`);
    const code = this.#bare(isReference ? undefined : schema, told);
    return code.startsWith('z.') ? documented(code, { description: brief(objectOf(value)['description']) }) : code;
  }

  #constant(pointer: string, schema: unknown): string {
    const known = this.#known.get(pointer);
    if (known) return known.isWhole ? known.name : `z.lazy((): z.ZodMiniType => ${known.name})`;
    const name = this.#names.of(pascal(pointer.slice(pointer.lastIndexOf('/') + 1)), 'Schema');
    const made = { name, isWhole: false };
    this.#known.set(pointer, made);
    const outer = this.notes;
    this.notes = [];
    const code = this.#named(schema, name);
    this.constants.push([...this.takeNotes(), `const ${name} = ${code};`].join('\n'));
    this.notes = outer;
    made.isWhole = true;
    return name;
  }

  /** Without its description, but where that is an argument. */
  #bare(given: unknown, told: string): string {
    const { $ref, allOf, nullable, ...others } = objectOf(given);
    const [only, second] = $ref === undefined ? listOf(allOf) : [{ $ref }];
    const isAlone = $ref !== undefined || Object.keys(others).every((name) => TELLS.test(name));
    const isOne = only !== undefined && second === undefined && isAlone;
    if (!isOne && this.#within.has(allOf)) {
      this.notes.push(`${told}: not checked, it has itself in it`);
      return ANY;
    }
    const schema = isOne ? { nullable } : this.#document.merged(given);
    for (const word of UNSAID) if (word in schema) this.notes.push(`${told}: \`${word}\` is not checked`);
    const types = [...new Set([schema['type']].flat())].filter((type) => type !== undefined);
    const choices = [schema['oneOf'] ?? schema['anyOf'] ?? []].flat();
    const options = choices.filter((one) => this.#document.object(one)['type'] !== 'null');
    const values = 'const' in schema ? [schema['const']] : schema['enum'];
    const isNullable =
      schema['nullable'] === true ||
      types.includes('null') ||
      options.length < choices.length ||
      listOf(values).includes(null);
    const plain = { ...schema, type: types.filter((type) => type !== 'null') };
    if (Array.isArray(allOf)) this.#within.add(allOf);
    const code = isOne
      ? this.#code(only, told)
      : Array.isArray(values)
        ? this.#values(values.filter((value) => value !== null))
        : options.length > 0
          ? this.#choice(plain, options, told)
          : this.#typed(plain, told);
    this.#within.delete(allOf);
    return isNullable ? `z.nullable(${code})` : code;
  }

  #values(values: readonly unknown[]): string {
    const all = [...new Set(values)];
    if (all.length === 0 || !all.every(isScalar)) return ANY;
    return all.every((value) => typeof value === 'string') ? `z.enum(${literal(all)})` : `z.literal(${literal(all)})`;
  }

  #choice(schema: Json, options: readonly unknown[], told: string): string {
    if (Object.keys(objectOf(schema['properties'])).length > 0) {
      this.notes.push(`${told}: which of its fields go together is not checked`);
      return this.#typed({ ...schema, type: ['object'] }, told);
    }
    const codes = [...new Set(options.map((option) => this.#code(option, told)))];
    const inOrder = codes.toSorted((a, b) => Number(a.includes('z.lazy(')) - Number(b.includes('z.lazy(')));
    return codes.length === 1
      ? (codes[0] ?? ANY)
      : block(
          'z.union([',
          inOrder.map((code) => `${code},`),
          '])',
        );
  }

  #typed(schema: Json, told: string): string {
    const [type = typeMeant(schema), ...others] = listOf(schema['type']);
    if (others.length > 0)
      return `z.union([${[type, ...others].map((one) => this.#typed({ ...schema, type: [one] }, told)).join(', ')}])`;
    if (type === 'object') return this.#object(schema, told);
    if (type === 'array') return `z.array(${this.#code(schema['prefixItems'] ? undefined : schema['items'], told)})`;
    const words = brief(schema['description']) || told;
    const sample = (kind: string, otherwise: unknown) =>
      literal(
        [schema['example'], ...listOf(schema['examples']), schema['default'], otherwise].find(
          (one) => isScalar(one) && typeof one === kind,
        ),
      );
    if (type === 'string')
      return schema['format'] === 'date-time'
        ? `timestamp(${literal(words)})`
        : `text(${literal(words)}, ${sample('string', 'text')})`;
    if (type === 'integer') return `integer(${literal(words)}, ${sample('number', 1)})`;
    if (type === 'number') return `number(${literal(words)}, ${sample('number', 1.5)})`;
    return type === 'boolean' ? `flag(${literal(words)}, ${sample('boolean', true)})` : ANY;
  }

  #object(schema: Json, told: string): string {
    const fields = Object.entries(objectOf(schema['properties']));
    const { additionalProperties: more } = schema;
    if (fields.length === 0 && typeof more === 'object')
      return documented(`z.record(z.string(), ${this.#code(more, told)})`, {
        description: brief(schema['description']),
        examples: '{}',
      });
    const required = listOf(schema['required']);
    return `z.looseObject(${block(
      '{',
      fields.map(([name, field]) => this.#field(name, field, required.includes(name))),
      '}',
    )})`;
  }

  #field(name: string, field: unknown, isRequired: boolean): string {
    if (name in {}) return comment(`the field ${literal(name)} is not here: every object of JavaScript has that name`);
    const outer = this.notes;
    this.notes = [];
    const code = this.#code(field, name);
    const isOneWay = [objectOf(field), this.#document.merged(field)].some(
      (one) => one['readOnly'] === true || one['writeOnly'] === true,
    );
    const isEndless = /^(?:z\.nullable\(|documented\()*z\.(?:union\(\[\s*z\.)?lazy\(/.test(code);
    if (isRequired && isEndless) this.notes.push(`${name}: required, and it has itself in it`);
    const isThere = isRequired && !isEndless && !isOneWay;
    const lines = [...this.takeNotes(), `${keyOf(name)}: ${isThere ? code : `z.optional(${code})`},`];
    this.notes = outer;
    return lines.join('\n');
  }
}

const ANY = 'documented(z.unknown(), { examples: [null] })';

function typeMeant({ properties, additionalProperties, items }: Json): string | undefined {
  if (Object.keys(objectOf(properties)).length > 0 || additionalProperties !== undefined) return 'object';
  return items === undefined ? undefined : 'array';
}

/** `examples`: code. */
function documented(code: string, meta: { id?: string; description?: string; examples?: string }): string {
  const { id, description, examples } = meta;
  const members = [
    id && `id: ${literal(id)}`,
    description && `description: ${literal(description)}`,
    examples && `examples: [${examples}]`,
  ].filter(Boolean);
  return members.length === 0 ? code : `documented(${code}, { ${members.join(', ')} })`;
}
