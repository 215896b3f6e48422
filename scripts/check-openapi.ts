import { Validator } from '@seriousme/openapi-schema-validator';
import { routes } from '../client/src/routes.ts';
import { forClient, routesOf } from '../src/entry/cli/client.ts';
import { openApiText } from '../src/routes/document.ts';
import { accountTables } from '../test/support/account-api.ts';

const text = await openApiText(accountTables);
const document = JSON.parse(text) as Record<string, unknown>;
const validator = new Validator();
const result = await validator.validate(document);

if (result.valid) {
  console.log(`The OpenAPI document is valid (${validator.version}).`);
} else {
  console.error('The OpenAPI document is not valid:', JSON.stringify(result.errors, null, 2));
  process.exitCode = 1;
}

const sorted = (table: object) =>
  JSON.stringify(Object.entries(table).toSorted(([one], [other]) => (one < other ? -1 : 1)));
if (sorted(routes) !== sorted(routesOf(forClient(text)))) {
  console.error(
    'client/src/routes.ts is not what the document says: expected a line for each operation, as it is there.',
  );
  process.exitCode = 1;
}
