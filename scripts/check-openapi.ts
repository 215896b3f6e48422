import { readFileSync, writeFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { forClient, routesOf } from '../src/entry/cli/client.ts';
import { openApiText } from '../src/routes/document.ts';
import type { Operation } from '../src/upstream/operation.ts';
import { accountTables, allOperations, allOverviews } from '../test/support/account-api.ts';

// Whether the OpenAPI document is valid, and the client's table is what the document and the rows say. `--write` writes that table.

const TABLE = new URL('../client/src/table.ts', import.meta.url).pathname;

const text = await openApiText(accountTables);
const validator = new Validator();
const result = await validator.validate(JSON.parse(text) as Record<string, unknown>);
if (result.valid) {
  console.log(`The OpenAPI document is valid (${validator.version}).`);
} else {
  console.error('The OpenAPI document is not valid:', JSON.stringify(result.errors, null, 2));
  process.exitCode = 1;
}

const isTouched = (read: Operation, { invalidates = [] }: Operation) =>
  read.method === 'GET' &&
  invalidates.some((one) => one === 'everything' || (typeof one === 'object' ? one.item : one) === read.group);

/** The reads that a write changes, and the overviews that have one of them. */
function touchedBy(write: Operation): readonly string[] {
  const reads: readonly string[] = allOperations.filter((one) => isTouched(one, write)).map(({ id }) => id);
  const shown = allOverviews.filter(({ sections }) =>
    Object.values(sections).some(({ read }) => reads.includes(read.id)),
  );
  return [...reads, ...shown.map(({ id }) => id)];
}

/** As oxfmt would have it. */
function lineOf(id: string, reads: readonly string[]): string {
  const names = reads.map((read) => `'${read}'`);
  const line = `  ${id}: [${names.join(', ')}],`;
  return line.length <= 120 ? line : `  ${id}: [\n${names.map((name) => `    ${name},\n`).join('')}  ],`;
}

const routes = Object.entries(routesOf(forClient(text))).map(([id, route]) => `  ${id}: '${route}',`);
const touched = allOperations
  .map((write) => [write.id, touchedBy(write)] as const)
  .filter(([, reads]) => reads.length > 0)
  .map(([id, reads]) => lineOf(id, reads));
const table = `// Made by \`npm run check:openapi -- --write\`, of the OpenAPI document and the rows. Do not change it by hand.

/** Method and path of every operation. A \`?\` at the end: it takes no body, and its input is the query. */
export const routes = {
${routes.join('\n')}
} as const;

/** The reads that each write changes, overviews among them. */
export const touched = {
${touched.join('\n')}
} as const;
`;

if (process.argv.includes('--write')) writeFileSync(TABLE, table);
if (readFileSync(TABLE, 'utf8') !== table) {
  console.error('client/src/table.ts is not what the document and the rows say: `npm run check:openapi -- --write`');
  process.exitCode = 1;
}
