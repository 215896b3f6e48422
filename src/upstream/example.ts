import * as z from 'zod/mini';

type Def = z.core.$ZodTypes['_zod']['def'];

// zod's documented way to tell schemas apart.
const defOf = ({ _zod: { def } }: z.core.$ZodType) => def as Def;

/**
 * A value that fits the schema, made of the examples that its fields document.
 * @throws Error for a field without an example that can be had no other way
 */
export function exampleOf(schema: z.core.$ZodType): unknown {
  const examples = z.globalRegistry.get(schema)?.['examples'];
  return Array.isArray(examples) && examples.length > 0 ? examples[0] : built(defOf(schema));
}

function built(def: Def): unknown {
  if (def.type === 'object')
    return Object.fromEntries(Object.entries(def.shape).map(([name, field]) => [name, exampleOf(field)]));
  if (def.type === 'array') return [exampleOf(def.element)];
  if (def.type === 'enum') return Object.values(def.entries)[0];
  if (def.type === 'literal') return def.values[0];
  if (def.type === 'union' && def.options[0]) return exampleOf(def.options[0]);
  if ('innerType' in def) return exampleOf(def.innerType);
  throw new Error(`a schema of type ${def.type} has to document an example`);
}
