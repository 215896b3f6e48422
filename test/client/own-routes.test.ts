import { afterAll, beforeAll, expect, it } from 'vitest';
import { createClient, type Routes } from '../../client/src/index.ts';
import { json, type ScriptedUpstream, startUpstream } from '../../src/testing/scripted-upstream.ts';

let gateway: ScriptedUpstream;

beforeAll(async () => void (gateway = await startUpstream()));

afterAll(() => gateway.close());

it('calls what the routes name that it is given, and knows no others', async () => {
  gateway.on('GET /api/v2/badge/7/', json(200, { title: 'Early bird' }));
  const routes = { getBadge: 'GET /api/v2/badge/{id}/' };
  const portico = createClient({ url: gateway.url, routes: routes as unknown as Routes });
  const { getBadge, getSubscription } = portico as unknown as Record<string, (input: object) => Promise<unknown>>;
  expect(await getBadge?.({ id: 7 })).toEqual({ title: 'Early bird' });
  expect(getSubscription).toBeUndefined();
});
