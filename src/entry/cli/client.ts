interface Call {
  readonly operationId: string;
  readonly tags?: readonly string[];
  parameters?: readonly { readonly in: string }[];
  readonly requestBody?: object;
  readonly responses: Record<string, { headers?: object }>;
}

interface Document {
  readonly paths: Record<string, Readonly<Record<string, Call>>>;
  components: { readonly schemas: object };
}

/** What a client needs of an OpenAPI document: no headers, problems as answers, examples, or calls about the gateway itself. */
export function forClient(text: string): Document {
  const document = JSON.parse(text, (key, value: unknown) =>
    key === 'example' || key === 'examples' ? undefined : value,
  ) as Document;
  for (const [path, methods] of Object.entries(document.paths))
    for (const call of Object.values(methods)) {
      if (call.tags?.includes('About')) delete document.paths[path];
      call.parameters = (call.parameters ?? []).filter((one) => one.in !== 'header');
      for (const [status, answer] of Object.entries(call.responses))
        if (status.startsWith('2')) delete answer.headers;
        else delete call.responses[status];
    }
  document.components = { schemas: document.components.schemas };
  return document;
}

/** Method and path of every operation, as `portico-client` takes them. A `?` at the end: it takes no body. */
export function routesOf({ paths }: Document): Record<string, string> {
  const routes: Record<string, string> = {};
  for (const [path, methods] of Object.entries(paths))
    for (const [method, { operationId, requestBody }] of Object.entries(methods))
      routes[operationId] = `${method.toUpperCase()} ${path}${method.startsWith('p') && !requestBody ? '?' : ''}`;
  return routes;
}

/** What we use of openapi-typescript. Only who prints types needs it, so it is no dependency. */
interface Generator {
  readonly default: (document: object, options: object) => Promise<unknown>;
  readonly astToString: (types: unknown) => string;
}

const GENERATOR = 'openapi-typescript';

/**
 * A module for `createClient({ url, routes })` of `portico-client`, which is then typed as the document says.
 * @throws Error in words where openapi-typescript is not installed
 */
export async function clientModuleOf(text: string): Promise<string> {
  const { default: typesOf, astToString } = await (import(GENERATOR) as Promise<Generator>).catch((cause: unknown) => {
    const words = `portico client needs ${GENERATOR}: npm install --save-dev ${GENERATOR} typescript@5`;
    throw new Error(words, { cause });
  });
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
