import { afterEach, describe, expect, test } from 'vitest';
import { isCode } from '../../src/core/errors.ts';
import { accountOverview } from '../support/account-api.ts';
import { POLLUTION } from './faults.ts';
import { expectProblem } from '../http/problem.ts';
import { dataText, legsOf, openOverviews, type OverviewWorld } from '../overviews/helpers.ts';
import { call } from '../support/http.ts';
import { bytes, httpResponse, json } from '../support/scripted-upstream.ts';

/** Into every object of the text. */
const pollute = (text: string) => text.replaceAll('{', () => `{${POLLUTION},`).replaceAll(',}', '}');

const legs = legsOf(accountOverview).map((leg) => ({
  ...leg,
  upstream: pollute(leg.upstream),
  text: pollute(leg.text),
}));

const legOf = (section: string) => legs.find((leg) => leg.section === section)!;

const NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty'];

const pollutedWorld = async () => {
  const world = await openOverviews({ RATE_LIMIT_PER_MINUTE: '0' });
  for (const leg of legs) world.on(leg, json(200, leg.upstream));
  return world;
};

afterEach(() => {
  for (const name of ['polluted', 'prototype']) expect({}).not.toHaveProperty(name);
});

describe('answers with __proto__ in every object', () => {
  test('are passed on value for value, and again from the cache', async () => {
    const world = await pollutedWorld();
    for (const { path, upstream } of legs) {
      for (const from of ['upstream', 'cache']) expect((await world.get(path)).text, `${path} ${from}`).toBe(upstream);
    }
    expect(world.upstream.calls).toHaveLength(legs.length);
  });

  test('are sections of an overview value for value, and again from the cache', async () => {
    const world = await pollutedWorld();
    for (const state of ['fresh', 'hit']) {
      const { text, body } = await world.get(accountOverview.path);
      expect(text.slice(0, `{"data":${dataText(legs)}`.length), state).toBe(`{"data":${dataText(legs)}`);
      expect(body).toMatchObject({ errors: [], meta: { complete: true } });
    }
    expect(world.upstream.calls).toHaveLength(legs.length);
  });

  test('are trimmed to the fields asked for', async () => {
    const world = await pollutedWorld();
    const { text } = await world.get(
      `${accountOverview.path}?sections=subscription,notifications&fields[subscription]=id&fields[notifications]=id`,
    );
    expect(text).toMatch(/^\{"data":\{"subscription":\{"id":\d+\},"notifications":\{/);
    expect(text).toMatch(/"results":\[\{"id":\d+\}\]/);
  });

  test('are items of a batch value for value', async () => {
    const world = await pollutedWorld();
    const requests = legs.map(({ path }, index) => ({ id: String(index), path }));
    const { text } = await world.get('/bff/v1/batch', { method: 'POST', body: { requests } });
    for (const { upstream } of legs) expect(text).toContain(upstream);
  });

  test('are lines of a stream value for value', async () => {
    const world = await pollutedWorld();
    const { text } = await world.get(accountOverview.path, { headers: { Accept: 'application/x-ndjson' } });
    for (const leg of legs) expect(text).toContain(`"data":${leg.text}}\n`);
  });
});

/** As `world.get`, without the body as an overview. */
const ask = ({ gateway, token }: OverviewWorld, path: string) => call(gateway.url, { path, token });

describe.each(NAMES)('a client that asks for %s', (name) => {
  test.each([
    ['as a section', `sections=${name}`],
    ['as a field', `fields[subscription]=${name}`],
    ['of a section that is called so', `fields[${name}]=id`],
  ])('%s is told that there is none', async (_, query) => {
    const world = await openOverviews();
    const answer = await ask(world, `${accountOverview.path}?${query}`);
    expectProblem(answer, { status: 400, code: 'validation_failed' });
    expect(world.upstream.calls).toEqual([]);
  });
});

describe.each(NAMES)('an upstream that answers with %s', (name) => {
  test('as a header does not get it through', async () => {
    const world = await openOverviews();
    const leg = legOf('notifications');
    const whole = httpResponse(200, leg.upstream).toString();
    world.on(leg, bytes(whole.replace('\r\n\r\n', () => `\r\n${name}: x\r\n${name}: y\r\n\r\n`)));
    const answer = await ask(world, leg.path);
    expect([answer.status, answer.text]).toEqual([200, leg.upstream]);
    expect(Object.hasOwn(answer.headers, name.toLowerCase())).toBe(false);
  });

  test.each([
    ['a field with texts', `{"${name}":["No."]}`],
    ['a field with codes', `{"${name}":[{"message":"No.","code":"no"}]}`],
    ['an object', `{"${name}":{"detail":"No.","code":"no"}}`],
    ['a code of a field', `{"label":[{"message":"No.","code":"${name}"}]}`],
  ])('in an error, as %s, is answered with a problem', async (_, body) => {
    const world = await openOverviews();
    const { path } = legOf('notifications');
    world.on({ path }, json(400, body));
    // What is called __proto__ is left out, all else is passed on.
    const isLeftOut = name === '__proto__' && !body.includes('label');
    const code = isLeftOut ? 'bad_request' : 'validation_failed';
    const { errors } = expectProblem(await ask(world, path), { status: 400, code });
    expect(errors).toEqual(isLeftOut ? [] : [expect.objectContaining({ message: 'No.' })]);
  });

  test('as the code of an error has it passed on, or left out', async () => {
    const world = await openOverviews();
    const { path } = legOf('notifications');
    world.on({ path }, json(400, { detail: 'No.', code: name }));
    const code = isCode(name) ? name : 'bad_request';
    expect(expectProblem(await ask(world, path), { status: 400, code }).detail).toBe('No.');
    expect((await ask(world, `/problems/${name}`)).status).toBeLessThan(500);
  });
});
