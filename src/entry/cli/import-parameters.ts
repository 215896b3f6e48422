import type { Form } from '../../upstream/path.ts';
import { type ApiDocument, type Json, listOf } from './import-document.ts';
import { brief, comment, keyOf, literal } from './import-words.ts';

/** The form of a parameter of a path, and what the document says more of it. */
export function formOf({ type, format, pattern, enum: values }: Json): { form: Form; unsaid?: string } {
  if (type === 'integer') return { form: 'digits' };
  if (format === 'uuid') return { form: 'uuid' };
  const unsaid = Array.isArray(values) ? values.join(', ') : (pattern ?? format);
  return { form: 'name', ...(typeof unsaid === 'string' && { unsaid }) };
}

/** The line of a parameter of the query. */
export function queryOf(parameter: Json, document: ApiDocument): string {
  const { schema, required, style = 'form', explode = true } = parameter;
  const name = String(parameter['name']);
  const said = document.merged(schema);
  const description = brief(parameter['description']) || name;
  const isList = said['type'] === 'array';
  if (!schema || style !== 'form' || said['type'] === 'object' || said['properties'] || name in {})
    return comment(`the parameter ${name} is passed on as it is`);
  const item = textOf(isList ? document.merged(said['items']) : said, description);
  const meta = [...(explode === true ? ['explode: true'] : []), `description: ${literal(description)}`];
  const code = isList ? `documented(z.array(${item}), { ${meta.join(', ')} })` : item;
  return `${keyOf(name)}: ${code},${required === true ? ' // required' : ''}`;
}

/** A schema of what is text in a query. */
function textOf({ type, minimum, enum: values }: Json, description: string): string {
  const words = literal(description);
  const all = type === 'boolean' ? ['true', 'false'] : listOf(values).filter((value) => value !== null);
  if (all.length > 0) return `documented(z.enum(${literal([...new Set(all.map(String))])}), { description: ${words} })`;
  if (type === 'integer') return `integerText(${words}${Number.isInteger(minimum) ? `, ${String(minimum)}` : ''})`;
  return `anyText(${words})`;
}
