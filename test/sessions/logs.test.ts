import { describe, expect, test } from 'vitest';
import type { TestGateway } from '../support/gateway.ts';
import { exampleRequest } from '../support/examples.ts';
import { leaksIn } from '../support/secrets.ts';
import { expectOver, NAME, openSessions, OWN_PAGE, SESSION, signInWith, valueIn } from './helpers.ts';

const SUBSCRIPTION = '/api/v2/subscription/';

const requestsIn = ({ lines }: TestGateway) => lines.filter(({ msg }) => msg === 'request');

describe('the line of a request', () => {
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
