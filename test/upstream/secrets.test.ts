import * as z from 'zod/mini';
import { describe, expect, test } from 'vitest';
import { allOperations } from '../support/account-api.ts';

const withSecrets = allOperations.filter(({ secrets }) => secrets !== undefined);

const fieldsOf = (schema: z.core.$ZodType | null | undefined): string[] =>
  schema instanceof z.core.$ZodObject ? Object.keys(schema._zod.def.shape) : [];

describe.each(withSecrets)('$id, which has secrets', (operation) => {
  test('is never cached', () => {
    expect(operation.cache).toBeUndefined();
  });

  test('names fields that its body or its answer documents', () => {
    const documented = [...fieldsOf(operation.answer), ...fieldsOf(operation.body?.schema)];
    expect(documented).toEqual(expect.arrayContaining([...(operation.secrets ?? [])]));
  });
});

test('every field that is called a key, a token or a secret is named as one', () => {
  for (const { id, answer, secrets = [] } of allOperations) {
    const suspicious = fieldsOf(answer).filter((name) => /(^|_)(key|token|secret)$/.test(name));
    expect(secrets, id).toEqual(expect.arrayContaining(suspicious));
  }
});
