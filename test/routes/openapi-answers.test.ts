import { describe, expect, test } from 'vitest';
import type { Overview } from '../../src/gateway/sections.ts';
import { ERRORS, GatewayError, problemOf } from '../../src/core/errors.ts';
import { openBatch, responsesOf } from '../batch/helpers.ts';
import {
  legsOf,
  ONLY_ON_ERROR,
  openOverviews,
  type OverviewWorld,
  overviewTable,
  SUBSCRIPTION,
  subscriptionWith,
} from '../overviews/helpers.ts';
import { accountTable } from '../support/account-api.ts';
import { exampleBody, exampleInput } from '../support/examples.ts';
import { json } from '../support/scripted-upstream.ts';
import { readIds } from '../support/table.ts';
import { checkerOf, document, itemOf } from './openapi-document.ts';

const checkerFor = (path: string, method: string, type: string) =>
  checkerOf(itemOf(path, method).responses['200']?.content?.[type]?.schema ?? {});

/** What the schema misses in a value: `data.subscription`. */
const misfits = (checker: ReturnType<typeof checkerOf>, value: unknown) =>
  checker.safeParse(value).error?.issues.map(({ path }) => path.join('.')) ?? [];

interface Case {
  readonly state: string;
  readonly section: string;
  readonly query?: string;
  readonly arrange?: (world: OverviewWorld) => Promise<unknown>;
}

const subscriptionIs = (status: number, text: string) => async (world: OverviewWorld) =>
  world.on({ path: SUBSCRIPTION }, json(status, text));

/** Every state of every section. */
const casesOf = (path: string, overview: Overview): Case[] =>
  legsOf(overview).flatMap((leg) => {
    const { section, required, isCard } = leg;
    const fails = async (world: OverviewWorld) => world.on(leg, json(503, ''));
    const isStale = async (world: OverviewWorld) => {
      await world.get(path);
      await fails(world);
    };
    const ofCard = [
      { state: 'not_applicable', section, arrange: subscriptionIs(200, subscriptionWith('null')) },
      { state: 'skipped', section, query: `?sections=${section}`, arrange: subscriptionIs(503, '') },
    ];
    return [
      { state: 'fresh', section },
      { state: 'fresh', section, query: `?sections=${section}` },
      { state: 'stale', section, arrange: isStale },
      ...(required ? [] : [{ state: 'failed', section, arrange: fails }]),
      ...(isCard ? ofCard : []),
    ];
  });

describe.each(overviewTable)('%s', (path, overview) => {
  const cases = casesOf(path, overview);
  const asJson = checkerFor(path, 'get', 'application/json');
  const asLine = checkerFor(path, 'get', 'application/x-ndjson');

  test.each(cases)('$section is as documented when $state', async ({ state, section, query = '', arrange }) => {
    const world = await openOverviews(ONLY_ON_ERROR);
    await arrange?.(world);
    const { body } = await world.get(path + query);
    expect(body.meta.sections[section]?.state).toBe(state);
    // The schema tells of an answer that has all required sections; the query may leave them out.
    const absent = legsOf(overview).filter((leg) => leg.required && !Object.hasOwn(body.data, leg.section));
    const missing = ['data', 'meta.sections'].flatMap((at) => absent.map((leg) => `${at}.${leg.section}`));
    expect(misfits(asJson, body)).toEqual(missing);

    const { text } = await world.get(path + query, { headers: { Accept: 'application/x-ndjson' } });
    const lines = text.trimEnd().split('\n');
    const values = lines.map((line) => JSON.parse(line) as { section?: string; state?: string });
    expect(values.find((value) => value.section === section)?.state).toBe(state);
    for (const value of values) expect(misfits(asLine, value), JSON.stringify(value)).toEqual([]);
  });

  test('is not documented as anything else', async () => {
    const { body } = await (await openOverviews()).get(path);
    for (const { section, required } of legsOf(overview)) {
      const without = { ...body, data: { ...body.data, [section]: null } };
      expect(misfits(asJson, without)).toEqual(required ? [`data.${section}`] : []);
      expect(misfits(asJson, { ...body, data: { ...body.data, [section]: {} } })).not.toEqual([]);
      expect(misfits(asLine, { section, state: 'lost', data: null })).not.toEqual([]);
    }
    expect(misfits(asLine, JSON.stringify({ complete: true }))).not.toEqual([]);
  });
});

test('a batch of every read, and of what fails, is as documented', async () => {
  const world = await openBatch();
  const paths = readIds.map((id) => exampleInput(id).path);
  for (const id of readIds) world.on(exampleInput(id).path, json(200, exampleBody(id)));
  const gone = '/api/v2/payment/transaction/404/';
  world.on(gone, json(418, { detail: 'No.', code: 'short_and_stout' }));
  const checker = checkerFor('/bff/v1/batch', 'post', 'application/json');
  for (const some of [paths.slice(0, 10), paths.slice(10), [paths[0]!, gone, '/nowhere', SUBSCRIPTION]]) {
    const { json: body } = await world.batch(some);
    expect(misfits(checker, body)).toEqual([]);
  }
  const [{ body } = { body: undefined }] = responsesOf(await world.batch([gone]));
  expect(misfits(checker, { responses: [{ id: 'a', status: 404, body }] })).toEqual([]);
  for (const item of [
    { id: 'a', status: 200, body: 5 },
    { id: 'a', status: 302, body },
  ])
    expect(misfits(checker, { responses: [item] })).not.toEqual([]);
});

test('each state of a key is as documented', () => {
  const checker = checkerFor('/bff/v1/outcome', 'get', 'application/json');
  const done = { state: 'done', status: 201, at: '2026-06-09T12:00:00.000Z' };
  for (const good of [done, { ...done, at: undefined }, { state: 'under_way' }, { state: 'unknown' }])
    expect(misfits(checker, JSON.parse(JSON.stringify(good)))).toEqual([]);
  for (const bad of [{ state: 'done' }, { ...done, at: 5 }, { state: 'lost' }, {}])
    expect(misfits(checker, bad)).not.toEqual([]);
});

describe('codes of problems', () => {
  const { Problem, ProblemCode } = document.components.schemas;
  const fits = (error: GatewayError) =>
    checkerOf(Problem!).safeParse(problemOf(error, { instance: '/', mount: '', requestId: 'r' })).success;

  test('are listed, all of the gateway’s', () => {
    expect(ProblemCode?.['enum']).toEqual([...Object.keys(ERRORS), ...accountTable.refusals.keys()]);
  });

  test.each([undefined, 'card_declined', '3ds-needed', 'not_found'])('may be the upstream’s: %s', (code) => {
    for (const status of [400, 404, 499]) expect(fits(GatewayError.refusal(code, status, {}))).toBe(true);
  });

  test.each(['', 'A secret', 'sk_live_51H'])('may not be anything: %j', (code) => {
    expect(fits(GatewayError.refusal(code, 400, {}))).toBe(false);
  });
});
