import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { allOverviews } from '../../src/gateway/overviews/index.ts';
import { documentedFields, project } from '../../src/gateway/project.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import { operations } from '../../src/upstream/operations/index.ts';
import {
  accountOverview,
  dataText,
  legOf,
  legsOf,
  overviewTable,
  referralOverview,
  openOverviews,
  SUBSCRIPTION,
} from './helpers.ts';
import { json } from '../support/scripted-upstream.ts';

const LISTS = ['notifications', 'transactions', 'pending_payments', 'credits', 'earn_outs', 'channels'];

/** The raw texts of these fields, out of a text that has each of them once. */
const picked = (text: string, names: readonly string[]) =>
  `{${names.map((name) => new RegExp(`"${name}":(?:"[^"]*"|[^,}]+)`).exec(text)?.[0]).join(',')}}`;

describe.each(overviewTable)('%s?sections=', (path, overview) => {
  const legs = legsOf(overview);
  const simple = legs.filter(({ section }) => section !== 'payment_method'); // see card.test.ts

  test.each(simple.map((leg) => [leg.section, leg] as const))('%s alone costs one call', async (section, leg) => {
    const { get, upstream } = await openOverviews();
    const { status, text, body } = await get(`${path}?sections=${section}`);
    expect(status).toBe(200);
    expect(text.startsWith(`{"data":${dataText([leg])},"errors":[],"meta":`)).toBe(true);
    expect(body.meta).toEqual({ complete: true, sections: { [section]: { state: 'fresh', age: 0 } } });
    expect(upstream.calls.map(({ target }) => target)).toEqual([leg.path]);
  });

  test('takes several, in whatever order and form they are asked for', async () => {
    const asked = [legs[0]!, legs[2]!];
    const [first, second] = asked.map(({ section }) => section);
    for (const query of [
      `sections=${first},${second}`,
      `sections=${second},${first}`,
      `sections=${second},${first},${second}`,
      `sections=${second}&sections=${first}`,
      `sections=${second}%2C${first}`,
    ]) {
      const { get, upstream } = await openOverviews();
      const { text } = await get(`${path}?${query}`);
      expect(text.startsWith(`{"data":${dataText(asked)},`), query).toBe(true);
      expect(upstream.calls).toHaveLength(2);
    }
  });

  test('does not fail for a required section that was not asked for', async () => {
    const world = await openOverviews();
    world.on(legs[0]!, json(500, 'oops'));
    const asked = legs.filter(({ section }) => LISTS.includes(section));
    const { status, text } = await world.get(`${path}?sections=${asked.map(({ section }) => section).join(',')}`);
    expect(status).toBe(200);
    expect(text.startsWith(`{"data":${dataText(asked)},`)).toBe(true);
    expect(world.upstream.callsTo(`GET ${legs[0]!.path}`)).toHaveLength(0);
  });

  test('has an ETag of what was asked for', async () => {
    const { get } = await openOverviews();
    const section = legs[0]!.section;
    const whole = await get(path);
    const part = await get(`${path}?sections=${section}`);
    expect(part.headers['etag']).not.toBe(whole.headers['etag']);
    const again = await get(`${path}?sections=${section}`, { headers: { 'If-None-Match': part.headers['etag']! } });
    expect(again.status).toBe(304);
  });
});

describe.each(overviewTable)('%s?fields[…]=', (path, overview) => {
  const legs = legsOf(overview);

  test.each(legs.map((leg) => [leg.section, leg] as const))('trims %s and leaves the rest', async (section, leg) => {
    const { get, upstream } = await openOverviews();
    const { text, body } = await get(`${path}?fields[${section}]=id,created_at`);
    const trimmed = body.data[section] as { results?: unknown[] } & Record<string, unknown>;
    const items = Array.isArray(trimmed) ? trimmed : (trimmed.results ?? [trimmed]);
    expect(items).toHaveLength(1);
    expect(Object.keys(items[0] as object)).toEqual(['id', 'created_at']);
    if (trimmed.results)
      expect(Object.keys(trimmed)).toEqual(['count', 'next', 'previous', 'results', 'x_new_field', 'x_big']);
    for (const other of legs) if (other !== leg) expect(text).toContain(`"${other.section}":${other.text}`);
    expect(upstream.calls).toHaveLength(4);
  });

  test('is taken from the same cache, and changes the ETag', async () => {
    const { get, upstream } = await openOverviews();
    const whole = await get(path);
    const trimmed = await get(`${path}?fields[${legs[0]!.section}]=id`);
    expect(upstream.calls).toHaveLength(4);
    expect(trimmed.headers['cache-status']).toMatch(/^portico; hit; /);
    expect(trimmed.headers['etag']).not.toBe(whole.headers['etag']);
  });
});

const inPage = (items: string) => `{"count":2,"next":null,"previous":null,"results":[${items}]}`;
const inArray = (items: string) => `[${items}]`;

describe('fields', () => {
  const { path } = accountOverview;
  const text = legOf(accountOverview, 'subscription').text.replace('"plan":3', '"plan":9007199254740993123');

  test.each([
    ['as they are', 'fields[subscription]=id,plan,free_credits'],
    ['encoded', 'fields%5Bsubscription%5D=id%2Cplan%2Cfree_credits'],
    ['in another order', 'fields[subscription]=free_credits,plan,id'],
    ['twice', 'fields[subscription]=id,plan,id&fields[subscription]=free_credits,plan'],
    ['with spaces', 'fields[subscription]=id,+plan,%20free_credits'],
  ])('keep their raw values and order when asked for %s', async (_, query) => {
    const world = await openOverviews();
    world.on({ path: SUBSCRIPTION }, json(200, text));
    const answer = await world.get(`${path}?sections=subscription&${query}`);
    expect(answer.text).toContain('{"data":{"subscription":{"id":5,"plan":9007199254740993123,"free_credits":10.0}},');
  });

  test.each([
    ['page', legOf(accountOverview, 'notifications'), ['id', 'type', 'dismissed_at'], inPage],
    ['array', legOf(referralOverview, 'channels'), ['id', 'total_revenue', 'initial_rate'], inArray],
  ] as const)('are those of every item of the %s', async (_, leg, names, around) => {
    const item = /\[(\{"id".*?9007199254740993123\})\]/.exec(leg.text)?.[1] ?? '';
    const items = [item, item.replace('"id":', '"id":9007199254740993')];
    const world = await openOverviews();
    world.on(leg, json(200, around(items.join(' ,\n '))));
    const overview = leg.section === 'channels' ? referralOverview : accountOverview;
    const query = `sections=${leg.section}&fields[${leg.section}]=${names.join(',')}`;
    const { text: whole } = await world.get(`${overview.path}?${query}`);
    const kept = items.map((each) => picked(each, names)).join(',');
    expect(whole).toContain(`{"data":{"${leg.section}":${around(kept)}},`);
  });

  test('that an item does not have are left out', async () => {
    const world = await openOverviews();
    const results = [{ id: 7, type: 'Wallet' }];
    world.on({ path: '/api/v2/payment/method/' }, json(200, { count: 1, next: null, previous: null, results }));
    const { body } = await world.get(`${path}?fields[payment_method]=id,brand,last4`);
    expect(body.data['payment_method']).toEqual({ id: 7 });
  });

  test('may be asked of a section that has failed or is not there', async () => {
    const world = await openOverviews();
    world.on({ path: '/api/v2/referral/config/' }, json(400, ''));
    const { status, body } = await world.get(`${path}?fields[referral_config]=id`);
    expect(status).toBe(200);
    expect(body.data['referral_config']).toBeNull();
  });

  test('that are documented can all be asked for', () => {
    for (const { sections } of allOverviews) {
      for (const { operation } of Object.values(sections)) {
        const names = [...documentedFields(operation)];
        expect(names).toContain('id');
        expect(names).not.toContain('results');
      }
    }
  });
});

describe('an unknown name is a 400 with an entry in errors, and costs no call', () => {
  test.each([
    ['sections=nope', ['sections']],
    ['sections=', ['sections']],
    ['sections=subscription,', ['sections']],
    ['sections=Subscription', ['sections']],
    ['sections=credits', ['sections']],
    ['sections=constructor,__proto__', ['sections', 'sections']],
    ['fields[nope]=id', ['fields[nope]']],
    ['fields[]=id', ['fields[]']],
    ['fields[__proto__]=id', ['fields[__proto__]']],
    ['fields[subscription]=nope', ['fields[subscription]']],
    ['fields[subscription]=', ['fields[subscription]']],
    ['fields[subscription]=id,x_new_field,constructor', ['fields[subscription]', 'fields[subscription]']],
    ['fields[notifications]=count', ['fields[notifications]']],
    ['fields%5Bnope%5D=id&sections=nope', ['fields[nope]', 'sections']],
  ])('%s', async (query, fields) => {
    const { get, upstream } = await openOverviews();
    const { status, headers, json: problem } = await get(`${accountOverview.path}?${query}`);
    expect({ status, type: headers['content-type'] }).toEqual({ status: 400, type: 'application/problem+json' });
    expect(problem).toMatchObject({
      code: 'validation_failed',
      instance: accountOverview.path,
      errors: fields.map((field) => ({
        field,
        code: expect.any(String) as string,
        message: expect.any(String) as string,
      })),
    });
    expect(upstream.calls).toHaveLength(0);
  });
});

const agrees = (operation: Operation, text: string, wanted: ReadonlySet<string>, expected: unknown) =>
  expect(JSON.stringify(JSON.parse(project(operation, text, wanted)))).toBe(JSON.stringify(expected));

describe('project', () => {
  const names = fc.oneof(fc.constantFrom('id', 'a', '', '__proto__', 'results', 'é"\\\n'), fc.string());
  const object = fc.dictionary(names, fc.jsonValue({ maxDepth: 3 }), { noNullPrototype: true });
  const item = fc.oneof(
    { weight: 4, arbitrary: object },
    { weight: 1, arbitrary: fc.constantFrom(null, 1.5, 'text', true) },
  );
  const fields = fc.uniqueArray(names, { maxLength: 6 }).map((each) => new Set(each));
  const space = fc.constantFrom('', ' ', '\n\t');

  const pick = (value: unknown, wanted: ReadonlySet<string>): unknown => {
    if (Array.isArray(value)) return value.map((each) => pick(each, wanted));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).filter(([name]) => wanted.has(name)));
  };

  test('equals picking from the parsed value, for objects and arrays', () => {
    fc.assert(
      fc.property(fc.oneof(object, fc.array(item)), fields, space, (value, wanted, indent) => {
        const text = JSON.stringify(value, null, indent);
        agrees(operations.listReferralChannels, text, wanted, pick(JSON.parse(text), wanted));
      }),
    );
  });

  test('equals picking from the items, for pages', () => {
    fc.assert(
      fc.property(fc.array(item), object, fields, space, (results, rest, wanted, indent) => {
        const text = JSON.stringify({ ...rest, results }, null, indent);
        const parsed = JSON.parse(text) as { results: unknown };
        agrees(operations.listTransactions, text, wanted, { ...parsed, results: pick(parsed.results, wanted) });
      }),
    );
  });

  test.each([
    ['{"a":1.50,"b":2}', '{"a":1.50}'],
    [' { "a" : [ 1 , "]}" ] , "b" : {"a":1} } ', '{"a":[ 1 , "]}" ]}'],
    ['{"b":"\\\\","a":"\\\\\\""}', '{"a":"\\\\\\""}'],
    ['{"\\u0061":12345678901234567890.0}', '{"a":12345678901234567890.0}'],
    ['{}', '{}'],
    ['null', 'null'],
  ])('%s becomes %s', (text, expected) => {
    expect(project(operations.getSubscription, text, new Set(['a']))).toBe(expected);
  });
});
