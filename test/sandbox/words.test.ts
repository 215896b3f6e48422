import { describe, expect, test } from 'vitest';
import type { OperationId } from '../support/account-api.ts';
import { exampleInput } from '../support/examples.ts';
import { callOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { rowOf, readIds, writeIds } from '../support/table.ts';
import { useWorld } from '../support/world.ts';
import { createClient } from './client.ts';

const stage = useWorld();
const { call } = createClient();

interface Mistake {
  readonly field: string | null;
  readonly message: string;
}

interface Bad {
  readonly query?: string;
  readonly body?: object;
}

/** What the gateway finds wrong itself, in front of an upstream that would take anything. */
async function mistakesOf(id: OperationId, { query, body }: Bad): Promise<readonly Mistake[]> {
  const { method, path } = exampleInput(id);
  const request = { method, path: query === undefined ? path : `${path}?${query}`, body, token: secret() };
  stage.upstream.on(callOf(id), json(204));
  const { status, json: answer } = await stage.call(request);
  return status === 400 ? (answer as { errors: Mistake[] }).errors : [];
}

/** What the sandbox says of them, asked without a gateway. */
async function refusalBySandbox(id: OperationId, { query, body }: Bad): Promise<unknown> {
  const { method, path } = exampleInput(id);
  const isOpen = rowOf(id).credential === 'none';
  const input = { body, ...(!isOpen && { as: 'paid' as const }) };
  const answer = await call(method, query === undefined ? path : `${path}?${query}`, input);
  return answer.status === 400 ? answer.json : undefined;
}

const saysOf = ({ field, message }: Mistake) => ({
  [field ?? 'non_field_errors']: expect.arrayContaining([expect.objectContaining({ message })]) as unknown,
});

const WRONG: readonly unknown[] = ['', 'nonsense', 1.5, -1, true, [], {}, { US: 'many' }, null, undefined];

const bodied = writeIds.filter((id) => exampleInput(id).body !== undefined && !rowOf(id).body?.optional);

const inBodies = (id: OperationId): Bad[] => {
  const example = JSON.parse(exampleInput(id).body ?? '') as object;
  const bodies = Object.keys(example).flatMap((name) => WRONG.map((value) => ({ ...example, [name]: value })));
  return [{}, ...bodies].map((body) => ({ body }));
};

const inQueries = (id: OperationId): Bad[] =>
  Object.keys(rowOf(id).query ?? {}).map((name) => ({ query: `${name}=nonsense` }));

/** What the sandbox passes over is not compared. */
async function expectSameWords(id: OperationId, bad: Bad): Promise<void> {
  const refusal = await refusalBySandbox(id, bad);
  if (refusal === undefined) return;
  for (const mistake of await mistakesOf(id, bad)) expect(refusal, JSON.stringify(bad)).toMatchObject(saysOf(mistake));
}

describe('a mistake that the sandbox refuses has the words of the gateway', () => {
  test.each(bodied)('in the body of %s', async (id) => {
    for (const bad of inBodies(id)) await expectSameWords(id, bad);
  });

  test.each(readIds.filter((id) => rowOf(id).query))('in the query of %s', async (id) => {
    for (const bad of inQueries(id)) await expectSameWords(id, bad);
  });
});

const PURCHASE = exampleInput('purchasePlan').path;

describe('the sandbox', () => {
  test.each([
    [{}, { proxy_countries: 'is missing' }],
    [{ proxy_countries: {} }, { proxy_countries: 'expected at least one proxy' }],
    [{ proxy_countries: { US: 0 } }, { proxy_countries: 'expected at least one proxy' }],
    [{ proxy_countries: { US: -1 } }, { 'proxy_countries.US': 'expected 0 or more' }],
    [{ proxy_countries: { XX: 5 } }, { 'proxy_countries.XX': 'expected a two-letter country code' }],
    [{ proxy_countries: { us: 5 } }, { 'proxy_countries.us': 'expected a two-letter country code' }],
    [
      { proxy_countries: { US: 5 }, proxy_type: 'sharedd' },
      { proxy_type: 'expected shared, semidedicated or dedicated' },
    ],
    [{ proxy_countries: { US: 5 }, term: 'weekly' }, { term: 'expected monthly or yearly' }],
  ])('sells no plan for %j', async (body, wrong) => {
    const answer = await call('POST', PURCHASE, { as: 'paid', body });
    const errors = Object.entries(wrong).map(([field, message]) => [field, [expect.objectContaining({ message })]]);
    expect([answer.status, answer.json]).toEqual([400, Object.fromEntries(errors)]);
  });

  test('sells one for all that the document shows, the code ZZ and fields of the pricing endpoint', async () => {
    const example = JSON.parse(exampleInput('purchasePlan').body ?? '') as object;
    for (const more of [{}, { proxy_countries: { ZZ: 1 } }, { x_of_pricing: 1 }]) {
      const body = { ...example, ...more, recaptcha: 'token', payment_method: 'default' };
      expect(await call('POST', PURCHASE, { as: 'paid', body }), JSON.stringify(body)).toMatchObject({ status: 200 });
    }
  });
});
