import { describe, expect, test } from 'vitest';
import { createClient, type OperationId as ClientId } from '../../client/src/index.ts';
import { routes } from '../../client/src/routes.ts';
import { exampleInput } from '../support/examples.ts';
import { bodyOf, callOf } from '../support/marked.ts';
import { json } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { type OperationId, operations } from '../support/account-api.ts';
import { callTo, openClient } from './helpers.ts';

const ids = Object.keys(operations) as OperationId[];
// The gateway's own tests hold the two to be the same list.
const routeOf = (id: OperationId) => routes[id as ClientId];

/** The example request as the client is given it: one object, of what stands in path, query and body. */
function inputOf(id: OperationId): object | undefined {
  const { path, query, body } = exampleInput(id);
  const template = routeOf(id).replace('?', '').split(' ')[1] ?? '';
  const pattern = new RegExp(`^${template.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
  const parts = { ...pattern.exec(path)?.groups, ...Object.fromEntries(new URLSearchParams(query)) };
  if (body !== undefined) return { ...parts, ...(JSON.parse(body) as object) };
  return Object.keys(parts).length > 0 ? parts : undefined;
}

describe.for(ids)('%s', (id) => {
  test('reaches the upstream as its request does, and resolves with what the upstream sends', async () => {
    const { gateway, upstream, ask, token } = await openClient();
    const text = bodyOf(id, 1);
    upstream.on(callOf(id), text === '' ? json(204) : json(200, text));
    const { path, query } = exampleInput(id);
    await ask(id, { path: query === undefined ? path : `${path}?${query}` });

    const own = secret();
    const portico = createClient({ url: gateway.url, token: own });
    const answer = await callTo(portico, id)(inputOf(id));
    expect(answer).toEqual(text === '' ? undefined : JSON.parse(text));

    const [first, second, ...others] = upstream.calls;
    expect(others).toEqual([]);
    const seen = ({ method, target, headers }: typeof first & object) => ({
      method,
      target,
      type: headers['content-type'],
      account: headers['authorization'],
    });
    const account = (of: string) => (first!.headers['authorization'] === undefined ? undefined : `Token ${of}`);
    expect(seen(first!).account).toBe(account(token));
    expect(seen(second!)).toEqual({ ...seen(first!), account: account(own) });
    expect(second!.body && JSON.parse(second!.body)).toEqual(first!.body && JSON.parse(first!.body));
  });
});

test('every operation of the upstream is one of the client', () => {
  expect(Object.keys(createClient())).toEqual(expect.arrayContaining(ids));
});
