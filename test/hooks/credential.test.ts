import { describe, expect, test } from 'vitest';
import type { Credential } from '../../src/upstream/hooks.ts';
import { json } from '../support/scripted-upstream.ts';
import { allOperations } from '../support/account-api.ts';
import { callOf } from '../support/marked.ts';
import { secret } from '../support/secrets.ts';
import { socialIds } from '../support/table.ts';
import { openWorld } from '../support/world.ts';

type Sent = Readonly<Record<string, string>>;

const FORMS: readonly (readonly [name: string, credential: Credential | undefined, sent: (key: string) => Sent])[] = [
  ['nothing', undefined, (key) => ({ authorization: `Token ${key}` })],
  ["'Token'", 'Token', (key) => ({ authorization: `Token ${key}` })],
  ["'Bearer'", 'Bearer', (key) => ({ authorization: `Bearer ${key}` })],
  ['a header', { header: 'X-Api-Key' }, (key) => ({ 'x-api-key': key })],
  ['the header `Authorization`', { header: 'Authorization' }, (key) => ({ authorization: key })],
  [
    'a function',
    (key) => ({ headers: { Authorization: `Basic ${key}`, 'X-Tenant': 't1' } }),
    (key) => ({ authorization: `Basic ${key}`, 'x-tenant': 't1' }),
  ],
];

describe.each(FORMS)('with %s as `credential`', (_, credential, sent) => {
  test('every operation that takes a credential sends it so, and the others send none', async () => {
    const world = await openWorld({}, { hooks: { credential } });
    world.answerAll();
    for (const { id } of allOperations) {
      await world.ask(id);
      const { headers = {} } = world.upstream.calls.at(-1) ?? {};
      const expected = socialIds.includes(id) ? {} : sent(world.token);
      const { authorization, 'x-api-key': key, 'x-tenant': tenant } = headers;
      expect([id, JSON.parse(JSON.stringify({ authorization, 'x-api-key': key, 'x-tenant': tenant }))]).toEqual([
        id,
        expected,
      ]);
      expect(JSON.stringify(headers).includes(world.token)).toBe(!socialIds.includes(id));
    }
    expect(world.upstream.calls).toHaveLength(allOperations.length);
  });
});

test('a function is not asked for calls without a credential, even if the request has one', async () => {
  const keys: string[] = [];
  const credential = (key: string) => {
    keys.push(key);
    return { headers: {} };
  };
  const world = await openWorld({}, { hooks: { credential } });
  world.answerAll();
  for (const id of socialIds) expect((await world.ask(id)).status).toBeLessThan(300);
  expect(world.upstream.calls).toHaveLength(socialIds.length);
  expect(keys).toEqual([]);
});

test('what a key is exchanged for is not in a problem, even if the upstream repeats it', async () => {
  const [token, static_] = [secret('token'), 'an-api-key-of-ours'];
  const credential = () => ({
    headers: { Authorization: `Bearer ${token}`, 'X-Pair': `id=short; sig="${token}-sig"` },
  });
  const world = await openWorld({}, { hooks: { credential, headers: { 'X-Gateway-Key': static_, 'X-Lang': 'the' } } });
  const detail = `the key ${world.token} or ${token} or Bearer ${token} or ${token}-sig and ${static_} are no good`;
  world.upstream.on(callOf('getSubscription'), json(400, { detail, [`field ${token}`]: [token] }));
  const { text, json: problem } = await world.ask('getSubscription');
  expect(text).not.toContain(token);
  expect(text).not.toContain(world.token);
  expect(problem).toMatchObject({ detail: 'the key … or … or Bearer … or … and … are no good' });
});
