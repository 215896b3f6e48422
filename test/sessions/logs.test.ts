import { describe, expect, test } from 'vitest';
import type { TestGateway } from '../support/gateway.ts';
import { exampleRequest } from '../support/examples.ts';
import { leaksIn } from '../support/secrets.ts';
import {
  expectOver,
  NAME,
  openSessions,
  overviewPaths,
  OWN_PAGE,
  SESSION,
  type SessionWorld,
  signInWith,
  valueIn,
} from './helpers.ts';

const SUBSCRIPTION = '/api/v2/subscription/';

const requestsIn = ({ lines }: TestGateway) => lines.filter(({ msg }) => msg === 'request');

/** What the line of that request says of how it was authenticated. */
async function authOf({ gateway }: SessionWorld, act: () => Promise<unknown>): Promise<unknown> {
  const before = requestsIn(gateway).length;
  await act();
  const [line, ...others] = requestsIn(gateway).slice(before);
  expect(others).toEqual([]);
  return line!['auth'];
}

describe('the line of a request', () => {
  test('by header or by cookie says so, for each kind of request', async () => {
    const world = await openSessions();
    const cookie = await world.signIn();
    const requests = [
      { path: SUBSCRIPTION },
      { path: SUBSCRIPTION },
      exampleRequest('getApiKey'),
      exampleRequest('createApiKey'),
      ...overviewPaths.map((path) => ({ path })),
      { path: overviewPaths[0]!, headers: { accept: 'application/x-ndjson' } },
      { path: '/bff/v1/batch', body: { requests: [{ id: 'a', path: SUBSCRIPTION }] } },
    ];
    for (const request of requests) {
      expect(await authOf(world, () => world.call({ ...request, token: world.token }))).toBe('header');
      expect(await authOf(world, () => world.by(cookie, request))).toBe('cookie');
      expect(await authOf(world, () => world.by(cookie, { ...request, token: world.token }))).toBe('header');
    }
  });

  test('says nothing of it where nobody is authenticated', async () => {
    const world = await openSessions();
    for (const act of [
      () => world.call({ path: SUBSCRIPTION }),
      () => world.by(`${NAME}=x`, { path: SUBSCRIPTION }),
      () => world.call({ path: '/problems' }),
      () => world.call({ path: SESSION }),
      () => world.call({ path: '/nothing' }),
      () => world.ask('loginSocial', { headers: {} }),
    ])
      expect(await authOf(world, act)).toBeUndefined();
  });

  test('has the account of the session, which is that of the key', async () => {
    const world = await openSessions();
    const cookie = await world.signIn();
    await world.ask('getApiKey');
    await world.askBy(cookie, 'getApiKey');
    const { account } = (await world.by(cookie, { path: SESSION })).json as { account: string };
    expect(requestsIn(world.gateway).map((line) => line['account'])).toEqual([account, account, account, account]);
  });
});

test('nothing of a cookie or a key is in any line, whatever becomes of the request', async () => {
  const world = await openSessions();
  const cookie = await world.signIn();
  const value = valueIn(cookie);
  const broken = [cookie.slice(0, -2), `${cookie}; ${cookie}`, `${NAME}="${value}"`, ` ${cookie}x`];
  for (const one of broken) expectOver(await world.by(one, { path: SUBSCRIPTION }));
  await world.by(cookie, { path: `${SUBSCRIPTION}?cookie=${value}` });
  await world.by(cookie, { path: SESSION, method: 'DELETE' });
  expectOver(await world.by(cookie, exampleRequest('createApiKey')));
  await world.call(signInWith(`${world.token} `));
  await world.call({ path: SESSION, body: `{"token":"${world.token}`, headers: OWN_PAGE });
  const text = world.gateway.lines.map((line) => JSON.stringify(line)).join('\n');
  expect(leaksIn(text)).toEqual([]);
  for (let at = 0; at + 16 <= value.length; at += 16) expect(text).not.toContain(value.slice(at, at + 16));
  expect(world.gateway.lines.filter(({ level }) => level === 'error')).toEqual([]);
});
