import { resource } from '../../upstream/fields.ts';
import { overview } from '../../gateway/overview.ts';
import { openApiText } from '../../routes/document.ts';
import { defineRows } from '../../upstream/operation.ts';
import { tableOf } from '../../upstream/table.ts';
import { ApiDocument, type Json, listOf, objectOf } from './import-document.ts';
import { Rows } from './import-rows.ts';
import { Schemas } from './import-schemas.ts';
import { block, brief, comment, literal, Names, plain } from './import-words.ts';

/** Of `portico`, as the printed file uses them. */
const HELPERS = 'anyText defineRows documented flag integer integerText number resource text timestamp';

/**
 * A table of rows, as code, from an OpenAPI document in a file of JSON or YAML.
 * @throws Error in words for what is no such document
 */
export async function rowsFrom(file: string): Promise<string> {
  const document = await ApiDocument.read(file);
  const own = await ownNames();
  const schemas = new Schemas(document, new Names([...own.schemas, 'NaN', 'Infinity']));
  const rows = new Rows(document, schemas, own.calls);
  const table = block('export const rows = defineRows({', rows.print(), '});');
  const said = new Map(
    listOf(document.whole['tags']).map((tag) => [objectOf(tag)['name'], objectOf(tag)['description']]),
  );
  const tags = [...rows.tags].map(([group, name]) => {
    const description = literal(brief(said.get(name)) || `${plain(name)}.`);
    return `${group}: { name: ${literal(plain(name))}, description: ${description} },`;
  });
  const parts = [...(tags.length > 0 ? [block('const tags = {', tags, '};')] : []), ...schemas.constants, table];
  const code = parts.join('\n\n');
  const bare = code.replaceAll(/"(?:[^"\\]|\\.)*"|\/\/.*$/gm, '');
  const used = HELPERS.split(' ').filter((name) => new RegExp(String.raw`\b${name}\(`).test(bare));
  const imports = [`import { ${used.join(', ')} } from "portico";`];
  if (bare.includes('z.')) imports.unshift('import * as z from "zod/mini";');
  return `${[headOf(document).map(comment).join('\n'), imports.join('\n'), code].join('\n\n')}\n`;
}

/** Names that calls and schemas of every gateway have in its document. */
async function ownNames() {
  const answer = resource('Answer', {});
  const rows = defineRows({ row: { at: 'GET /row', answer } });
  const overviews = [overview('/bff/v1/overview', { row: { read: rows.row } })];
  const { components, paths } = JSON.parse(await openApiText({ table: tableOf(rows), overviews })) as {
    readonly components: { readonly schemas: object };
    readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
  };
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId: id }]) => ({ id, method, path })),
  );
  return { schemas: Object.keys(components.schemas), calls };
}

function headOf(document: ApiDocument): string[] {
  const { whole } = document;
  const { title, version } = objectOf(whole['info']);
  const [server, ...others] = listOf(whole['servers']).map(urlOf);
  const keys = Object.entries(objectOf(objectOf(whole['components'])['securitySchemes']));
  const apart = Object.keys(objectOf(whole['webhooks']));
  return [
    `Printed by \`portico import\` from ${String(title)} ${String(version)}, OpenAPI ${String(whole['openapi'])}. It is yours to change.`,
    `Paths are below UPSTREAM_BASE_URL: ${server === undefined ? 'the document names no server' : `here ${server}${server.startsWith('/') ? ' of its host' : ''}`}.`,
    ...(others.length > 0 ? [`Other servers: ${others.join(', ')}`] : []),
    ...keys.map(([name, scheme]) => `Key ${name}: ${keyIn(document.object(scheme))}`),
    'Nothing is cached until its row says so: cache: { fresh: 30, stale: 60, onError: 3600 }',
    'Types are checked, and the minimum of an integer in a query. All else is for the upstream, such as missing parameters of a query.',
    'A text in a path may have letters, digits and . _ ~ - only.',
    ...(apart.length > 0 ? [`Webhooks are not here: ${apart.join(', ')}`] : []),
  ];
}

/** With the default values of its variables. */
function urlOf(server: unknown): string {
  const { url, variables } = objectOf(server);
  return String(url).replaceAll(/\{([^{}]*)\}/g, (whole, name: string) => {
    const { default: value = whole } = objectOf(objectOf(variables)[name]);
    return String(value);
  });
}

function keyIn({ type, scheme, in: where, name }: Json): string {
  const said = [type, scheme, where, name].filter((one) => typeof one === 'string').join(' ');
  if (where === 'query' || where === 'cookie') return `${said}. It cannot be sent`;
  const isBearer = type === 'oauth2' || type === 'openIdConnect' || /^bearer$/i.test(String(scheme));
  const headers = isBearer
    ? 'Authorization: `Bearer ${credential}`'
    : `${literal(name ?? 'Authorization')}: credential`;
  return `${said}. To send it: portico({ headers: ({ credential }) => ({ ${headers} }) })`;
}
