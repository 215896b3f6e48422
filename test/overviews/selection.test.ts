import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { accountOverview, allOverviews, operations, referralOverview } from '../support/account-api.ts';
import { documentedFields, project } from '../../src/routes/selection.ts';
import type { Operation } from '../../src/upstream/operation.ts';
import {
  dataText,
  freshMeta,
  legOf,
  type LegScript,
  legsOf,
  overviewTable,
  openOverviews,
  SUBSCRIPTION,
} from './helpers.ts';
import { json } from '../support/scripted-upstream.ts';

/** The items of a section, where it is a list, and else the section itself. */
const itemsOf = (section: unknown) => {
  const { results = [section] } = section as { results?: unknown[] };
  return (Array.isArray(section) ? section : results) as Readonly<Record<string, unknown>>[];
};

/** The raw texts of these fields, out of a text that has each of them once. */
const picked = (text: string, names: readonly string[]) =>
  `{${names.map((name) => new RegExp(`"${name}":(?:"[^"]*"|[^,}]+)`).exec(text)?.[0]).join(',')}}`;

describe.each(overviewTable)('%s?sections=', (path, overview) => {
  const legs = legsOf(overview);
  const simple = legs.filter(({ isCard }) => !isCard); // see card.test.ts
  const table = simple.map((leg) => [leg.section, leg] as const);
  const required = legs.find((leg) => leg.required)!;

  test.each(table)('%s alone costs one call', async (section, leg) => {
    const { get, upstream } = await openOverviews();
    const { status, text, body } = await get(`${path}?sections=${section}`);
    expect(status).toBe(200);
    expect(text.startsWith(`{"data":${dataText([leg])},"errors":[],"meta":`)).toBe(true);
    expect(body.meta).toEqual(freshMeta([leg]));
    expect(upstream.calls.map(({ target }) => target)).toEqual([leg.path]);
  });

  test('takes several, in whatever order and form they are asked for', async () => {
    const asked = simple.filter((leg) => leg === simple[0] || leg === simple.at(-1));
    const names = asked.map(({ section }) => section);
    const turned = names.toReversed();
    for (const query of [
      `sections=${names.join(',')}`,
      `sections=${turned.join(',')}`,
      `sections=${[...turned, ...names].join(',')}`,
      `sections=${turned.join('&sections=')}`,
      `sections=${turned.join('%2C')}`,
    ]) {
      const { get, upstream } = await openOverviews();
      const { text } = await get(`${path}?${query}`);
      expect(text.startsWith(`{"data":${dataText(asked)},`), query).toBe(true);
      expect(upstream.calls).toHaveLength(asked.length);
    }
  });

  test.each(table.filter(([, leg]) => !leg.required))(
    '%s does not fail for a required section',
    async (section, leg) => {
      const world = await openOverviews();
      world.on(required, json(500, 'oops'));
      const { status, text } = await world.get(`${path}?sections=${section}`);
      expect(status).toBe(200);
      expect(text.startsWith(`{"data":${dataText([leg])},`)).toBe(true);
      expect(world.upstream.callsTo(`GET ${required.path}`)).toHaveLength(0);
    },
  );

  test.runIf(legs.length > 1)('has an ETag of what was asked for', async () => {
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
  /** Every second field of a section. */
  const fieldsOf = ({ section }: LegScript) =>
    [...documentedFields(overview.sections[section]!.read)].filter((_, nth) => nth % 2 === 0);

  test.each(legs.map((leg) => [leg.section, leg] as const))('trims %s and leaves the rest', async (section, leg) => {
    const { get, upstream } = await openOverviews();
    const { text, body } = await get(`${path}?fields[${section}]=${fieldsOf(leg).join(',')}`);
    const trimmed = body.data[section] as object;
    expect(itemsOf(trimmed).map((item) => Object.keys(item))).toEqual([fieldsOf(leg)]);
    if ('results' in trimmed)
      expect(Object.keys(trimmed)).toEqual(['count', 'next', 'previous', 'results', 'x_new_field', 'x_big']);
    for (const other of legs) if (other !== leg) expect(text).toContain(`"${other.section}":${other.text}`);
    expect(upstream.calls).toHaveLength(legs.length);
  });

  test('is taken from the same cache, and changes the ETag', async () => {
    const { get, upstream } = await openOverviews();
    const whole = await get(path);
    const trimmed = await get(`${path}?fields[${legs[0]!.section}]=${fieldsOf(legs[0]!).join(',')}`);
    expect(upstream.calls).toHaveLength(legs.length);
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
    const results = [{ id: 1071, type: 'Wallet' }];
    world.on({ path: '/api/v2/payment/method/' }, json(200, { count: 1, next: null, previous: null, results }));
    const { body } = await world.get(`${path}?fields[payment_method]=id,brand,last4`);
    expect(body.data['payment_method']).toEqual({ id: 1071 });
  });

  test('may be asked of a section that has failed or is not there', async () => {
    const world = await openOverviews();
    world.on({ path: '/api/v2/referral/config/' }, json(400, ''));
    const { status, body } = await world.get(`${path}?fields[referral_config]=id`);
    expect(status).toBe(200);
    expect(body.data['referral_config']).toBeNull();
  });

  test('that are documented can all be asked for', () => {
    for (const overview of allOverviews) {
      for (const { section, text: whole } of legsOf(overview)) {
        const [item] = itemsOf(JSON.parse(whole));
        const names = Object.keys(item!).filter((name) => !name.startsWith('x_'));
        expect([...documentedFields(overview.sections[section]!.read)]).toEqual(names);
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
