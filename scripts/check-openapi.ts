import { Validator } from '@seriousme/openapi-schema-validator';
import { openApiText } from '../src/routes/document.ts';
import { accountTables } from '../test/support/account-api.ts';

const document = JSON.parse(await openApiText(accountTables)) as Record<string, unknown>;
const validator = new Validator();
const result = await validator.validate(document);

if (result.valid) {
  console.log(`The OpenAPI document is valid (${validator.version}).`);
} else {
  console.error('The OpenAPI document is not valid:', JSON.stringify(result.errors, null, 2));
  process.exitCode = 1;
}
