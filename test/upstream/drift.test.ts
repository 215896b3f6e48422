import { describe, expect, test } from 'vitest';
import { exampleBody } from '../support/examples.ts';
import { json } from '../support/scripted-upstream.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { useWorld } from '../support/world.ts';

const stage = useWorld();

const warnings = () => stage.gateway.lines.filter(({ level }) => level === 'warn');

interface Drift {
  readonly path: string;
  readonly text: () => string;
  readonly operation: string;
  readonly fields: readonly string[];
}

const CASES: Readonly<Record<string, Drift>> = {
  'a field of another type': {
    path: '/api/v2/subscription/',
    text: () => exampleBody('getSubscription', { term: 7 }),
    operation: 'getSubscription',
    fields: ['term'],
  },
  'a field that is missing': {
    path: '/api/v2/subscription/',
    text: () => exampleBody('getSubscription').replace('"paused":', '"pause":'),
    operation: 'getSubscription',
    fields: ['paused'],
  },
  'a date that is none': {
    path: '/api/v2/subscription/',
    text: () => exampleBody('getSubscription', { end_date: secret('date') }),
    operation: 'getSubscription',
    fields: ['end_date'],
  },
  'two fields': {
    path: '/api/v2/referral/config/',
    text: () => exampleBody('getReferralConfig', { mode: null, promo_value: secret('value') }),
    operation: 'getReferralConfig',
    fields: ['mode', 'promo_value'],
  },
  'the same field of two items': {
    path: '/api/v2/payment/transaction/',
    text: () => {
      const item = exampleBody('getTransaction').replace('"amount":25.5', '"amount":"25.50"');
      return `{"count":2,"next":null,"previous":null,"results":[${item},${item}]}`;
    },
    operation: 'listTransactions',
    fields: ['results[].amount'],
  },
  'a field whose name the upstream made up': {
    path: '/api/v2/subuser/1/',
    text: () => exampleBody('getSubuser', { proxy_countries: { [secret('name')]: 'many' } }),
    operation: 'getSubuser',
    fields: ['proxy_countries.*'],
  },
  'a key of a map that looks like the name of a field': {
    path: '/api/v2/subuser/1/',
    text: () => exampleBody('getSubuser', { proxy_countries: { jane_doe: 'many', id: 'more' } }),
    operation: 'getSubuser',
    fields: ['proxy_countries.*'],
  },
  'a key of a map that is deep inside': {
    path: '/api/v2/subuser/1/',
    text: () => {
      const { aggregate_stats: stats } = JSON.parse(exampleBody('getSubuser')) as { aggregate_stats: object };
      return exampleBody('getSubuser', {
        aggregate_stats: { ...stats, countries_used: { us: 'x' }, error_reasons: [{}] },
      });
    },
    operation: 'getSubuser',
    fields: [
      ...['reason', 'type', 'how_to_fix', 'http_status', 'count'].map(
        (name) => `aggregate_stats.error_reasons[].${name}`,
      ),
      'aggregate_stats.countries_used.*',
    ],
  },
  'the whole': {
    path: '/api/v2/subscription/',
    text: () => '[]',
    operation: 'getSubscription',
    fields: ['(whole)'],
  },
};

describe('an answer that does not fit its schema in', () => {
  test.each(Object.entries(CASES))('%s is passed on as it came, and warned of', async (_, { path, text, ...drift }) => {
    const body = text();
    stage.upstream.on(`GET ${path}`, json(200, body));
    expect(await stage.call({ path, token: secret() })).toMatchObject({ status: 200, text: body });
    expect(warnings().map(({ operation, field }) => [operation, field])).toEqual(
      drift.fields.map((field) => [drift.operation, field]),
    );
    expect(leaksIn(JSON.stringify(stage.gateway.lines))).toEqual([]);
  });
});

test('what fits is not warned of, nor what nobody documented', async () => {
  stage.upstream.on('GET /api/v2/subscription/', json(200, exampleBody('getSubscription', { x_more: secret('new') })));
  expect((await stage.call({ path: '/api/v2/subscription/', token: secret() })).status).toBe(200);
  expect(warnings()).toEqual([]);
});

test('an answer of another shape to a write is passed on and warned of', async () => {
  const text = '{"payment_required":"no"}';
  stage.upstream.on('POST /api/v2/subscription/checkout/purchase/', json(200, text));
  const request = { path: '/api/v2/subscription/checkout/purchase/', token: secret(), body: {} };
  expect(await stage.call(request)).toMatchObject({ status: 200, text });
  expect(warnings().map(({ field }) => field)).toEqual(['payment_required', 'plan']);
});

test('an error is not held against the schema of good answers', async () => {
  stage.upstream.on('GET /api/v2/subscription/', json(404, { detail: 'No.' }));
  expect((await stage.call({ path: '/api/v2/subscription/', token: secret() })).status).toBe(404);
  expect(warnings()).toEqual([]);
});

test('of a large answer a sample is checked: its size does not stop the gateway', async () => {
  const items = Array.from({ length: 200_000 }, () => '{}').join(',');
  const text = `{"count":1,"next":null,"previous":null,"results":[${items}]}`;
  stage.upstream.on('GET /api/v2/referral/earnout/', json(200, text));
  const begunAt = performance.now();
  const answer = await stage.call({ path: '/api/v2/referral/earnout/', token: secret() });
  expect(answer.text).toBe(text);
  expect(performance.now() - begunAt).toBeLessThan(2_000); // unsampled: 4 s and 1.5 GB
  expect(warnings().map(({ field }) => field)).toContain('results[].id');
});
