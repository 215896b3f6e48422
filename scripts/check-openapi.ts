import { Validator } from '@seriousme/openapi-schema-validator';
import { createOpenApiDocument } from '../src/routes/openapi/document.ts';

// As a client sees it: what JSON drops is not part of the document.
const document = JSON.parse(JSON.stringify(createOpenApiDocument())) as Record<string, unknown>;
const validator = new Validator();
const result = await validator.validate(document);

if (result.valid) {
  console.log(`The OpenAPI document is valid (${validator.version}).`);
} else {
  console.error('The OpenAPI document is not valid:', JSON.stringify(result.errors, null, 2));
  process.exitCode = 1;
}
