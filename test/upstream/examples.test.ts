import { describe, expect, test } from 'vitest';
import { type Operation } from '../../src/upstream/operation.ts';
import { allOperations } from '../support/account-api.ts';
import { exampleBody, exampleInput, exampleOf } from '../support/examples.ts';

const queryOf = (operation: Operation) => Object.entries(operation.query ?? {});

describe.each(allOperations.map((operation) => [operation.id, operation] as const))(
  '%s',
  (id, operation: Operation) => {
    test('its example answer fits its schema', () => {
      const text = exampleBody(id);
      if (operation.answer === null) return expect(text).toBe('');
      expect(operation.answer.safeParse(JSON.parse(text)).error).toBeUndefined();
      expect(operation.answer.safeParse(exampleOf(operation.answer)).error).toBeUndefined();
    });

    test('its example answer holds what parsing and printing would change', () => {
      const text = exampleBody(id);
      if (operation.answer === null) return;
      expect(text).toContain('"x_new_field":{"deep":[1,2.50,"é"]}');
      expect(text).toContain('"x_big":9007199254740993123');
      expect(JSON.stringify(JSON.parse(text))).not.toBe(text);
    });

    test('its example request is a valid one', () => {
      const { method, path, query, body } = exampleInput(id);
      expect(method).toBe(operation.method);
      expect(path).toMatch(/^\/api\/v2\/[^{}]+\/$/);
      const sent = new URLSearchParams(query);
      for (const [name, schema] of queryOf(operation))
        expect(schema.safeParse(sent.get(name)).success, name).toBe(true);
      expect(body === undefined).toBe(operation.body === undefined);
      if (body !== undefined) expect(operation.body?.schema.safeParse(JSON.parse(body)).error).toBeUndefined();
    });
  },
);

describe('an example answer', () => {
  test('writes an integral float with its fraction, and an integer without', () => {
    expect(exampleBody('getTransaction')).toContain('"credits_used":0.0,');
    expect(exampleBody('getTransaction')).toContain('"id":1201,');
  });

  test('takes changes to its outermost object', () => {
    expect(exampleBody('getSubscription', { payment_method: null })).toContain('"payment_method":null,');
  });
});
