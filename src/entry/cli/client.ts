interface Call {
  readonly operationId: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly { readonly in: string }[];
  readonly requestBody?: object;
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: object }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Call>>>>;
  readonly components: { readonly schemas: object };
}

const mapped = <T, R>(entries: readonly (readonly [string, T])[], of: (value: T) => R): Record<string, R> =>
  Object.fromEntries(entries.map(([key, value]) => [key, of(value)]));

const named = ({ parameters = [], responses, ...call }: Call) => ({
  ...call,
  parameters: parameters.filter((one) => one.in !== 'header'),
  responses: mapped(
    Object.entries(responses).filter(([status]) => status.startsWith('2')),
    ({ description, content }) => ({ description, ...(content && { content }) }),
  ),
});

const EXAMPLES = ['example', 'examples'];

/** Of an OpenAPI document what a client needs: without headers, problems as answers, examples, and calls about the gateway itself. */
export function forClient(text: string): Document {
  const withoutExamples: unknown = JSON.parse(text, (key, value) =>
    EXAMPLES.includes(key) ? undefined : (value as unknown),
  );
  const { paths, components, ...document } = withoutExamples as Document;
  const calls = Object.entries(paths).filter(([, methods]) => !Object.values(methods)[0]?.tags?.includes('About'));
  return {
    ...document,
    paths: mapped(calls, (methods) => mapped(Object.entries(methods), named)),
    components: { schemas: components.schemas },
  };
}

/** Method and path of every operation, as `portico-client` takes them. A `?` at the end: it takes no body. */
export const routesOf = ({ paths }: Document): Record<string, string> =>
  Object.fromEntries(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId, requestBody }]) => [
        operationId,
        `${method.toUpperCase()} ${path}${method.startsWith('p') && !requestBody ? '?' : ''}`,
      ]),
    ),
  );

/** What we use of openapi-typescript. */
interface Generator {
  readonly default: (document: object, options: object) => Promise<unknown>;
  readonly astToString: (types: unknown) => string;
}

const GENERATOR = 'openapi-typescript';

/** Only who prints types needs it, so it is no dependency. */
async function generator(): Promise<Generator> {
  try {
    return (await import(GENERATOR)) as Generator;
  } catch (cause) {
    const words = `portico client needs ${GENERATOR}: npm install --save-dev ${GENERATOR} typescript@5`;
    throw new Error(words, { cause });
  }
}

/**
 * A module for `createClient({ url, routes })` of `portico-client`, which is then typed as the document says.
 * @throws Error in words where openapi-typescript is not installed
 */
export async function clientModuleOf(text: string): Promise<string> {
  const { default: typesOf, astToString } = await generator();
  const document = forClient(text);
  const types = astToString(await typesOf(document, { rootTypes: true, rootTypesNoSchemaPrefix: true, silent: true }));
  return `// Printed by \`portico client\`: types and paths of a gateway, for createClient({ url, routes }) of portico-client.

import type {} from 'portico-client'; // for what is declared of it at the end, also where no other file imports it

${types}
export const routes = ${JSON.stringify(routesOf(document), null, 2)} as const satisfies Record<keyof operations, string>;

type Own = operations;

declare module 'portico-client' {
  interface Registered {
    operations: Own;
  }
}
`;
}
