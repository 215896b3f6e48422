import { randomBytes, randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { ERROR_CODES, REASONS } from '../../src/core/errors.ts';
import { VERSION } from '../../src/core/version.ts';
import { allOperations, allOverviews } from '../support/account-api.ts';
import { type Measured, openMeasured, REQUESTS } from './helpers.ts';
import { exampleInput } from '../support/examples.ts';
import { rawRequest, requestText } from '../support/raw-client.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';

const TIMES = 50;

const word = () => randomBytes(6).toString('hex');
const digits = () => String(randomInt(1, 2 ** 40));

/** All that a client can make up. */
const INVENTED: Readonly<Record<string, (stage: Measured) => Promise<unknown>>> = {
  paths: ({ call, token }) => call({ path: `/${word()}/${word()}`, token }),
  'paths below known ones': ({ call, token }) => call({ path: `/api/v2/subscription/${word()}/`, token }),
  methods: ({ gateway }) =>
    rawRequest(
      gateway.port,
      requestText({ method: `X${word()}`.replaceAll(/\d/g, '').toUpperCase(), target: '/livez' }),
    ),
  credentials: ({ ask }) => ask('getSubscription', { token: secret() }),
  'malformed credentials': ({ ask }) => ask('getSubscription', { headers: { Authorization: word() } }),
  ids: ({ call, token }) => call({ path: `/api/v2/payment/method/${digits()}/`, token }),
  'ids of nothing': ({ call, token }) => call({ path: `/api/v2/payment/transaction/${digits()}/`, token }),
  queries: ({ call, token }) => call({ path: `/api/v2/notification/?${word()}=${word()}`, token }),
  sections: ({ call, token }) => call({ path: `/bff/v1/account-overview?sections=${word()}`, token }),
  'items of a batch': ({ call, token }) =>
    call({ path: '/bff/v1/batch', token, body: { requests: [{ id: word(), path: `/${word()}/` }] } }),
  'idempotency keys': ({ ask }) => ask('createApiKey', { headers: { 'Idempotency-Key': word() } }),
  'keys that are asked for': ({ call, token }) =>
    call({ path: '/bff/v1/outcome', token, headers: { 'Idempotency-Key': word() } }),
  headers: ({ ask }) =>
    ask('getSubscription', {
      headers: {
        'X-Request-Id': word(),
        'User-Agent': word(),
        'Cache-Control': word(),
        Prefer: word(),
        Host: `${word()}.example`,
      },
    }),
};

test.each(Object.entries(INVENTED))('%s that a client makes up add no series', async (_, request) => {
  const stage = await openMeasured({ RATE_LIMIT_PER_MINUTE: '0' });
  stage.upstream.on(({ path }) => path.startsWith('/api/v2/payment/transaction/'), json(404, '{"detail":"none"}'));
  for (let times = 0; times < 2; times++) await request(stage); // the second may be one from the cache
  const before = await stage.scrape();
  for (let times = 0; times < TIMES; times++) await request(stage);
  const after = await stage.scrape();
  expect(after.series).toEqual(before.series);
});

test('operations are those of the tables, and all labels are from fixed sets', async () => {
  const stage = await openMeasured({ RATE_LIMIT_PER_MINUTE: '0' });
  for (const request of Object.values(INVENTED)) await request(stage);
  for (const { id } of allOperations) await stage.ask(id);
  for (const { path } of allOverviews) await stage.call({ path, token: stage.token });
  stage.upstream.on(`GET ${exampleInput('getSubscription').path}`, json(500, '{}'));
  await stage.ask('getSubscription', { token: secret() });
  const { samples, value } = await stage.scrape();
  const operations = new Set([...allOperations, ...allOverviews].map(({ id }) => id))
    .add('batch')
    .add('getOutcome')
    .add('(none)');
  const known: Readonly<Record<string, ReadonlySet<string>>> = {
    operation: operations,
    status: new Set(['2xx', '3xx', '4xx', '5xx']),
    cache: new Set(['hit', 'stale', 'miss', 'request', 'bypass', 'method', '(none)']),
    reason: new Set(['', ...REASONS]),
    code: new Set([...ERROR_CODES, '(upstream)']),
    phase: new Set(['own', 'gates', 'slot', 'store', 'joined', 'attempt', 'back-off']),
    version: new Set([VERSION]),
    node: new Set([process.version]),
  };
  const labels = samples.filter(({ name }) => name.startsWith('portico_')).flatMap((one) => Object.entries(one.labels));
  expect(labels.filter(([name, text]) => known[name]?.has(text) === false)).toEqual([]);
  expect(new Set(labels.map(([name]) => name))).toEqual(new Set([...Object.keys(known), 'le', 'outcome', 'by']));
  for (const operation of operations)
    expect([operation, value(REQUESTS, { operation }) > 0]).toEqual([operation, true]);
});
