import { afterAll, beforeAll, expect, it } from 'vitest';
import { createClient, type OverviewId, type Routes, streamOverview } from '../../client/src/index.ts';
import { json, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';

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

it('names the path of a stream that was cut off, with its id', async () => {
  gateway.on('GET /bff/v1/card-overview/7', json(200, ''));
  const routes = { getCardOverview: 'GET /bff/v1/card-overview/{id}' };
  const portico = createClient({ url: gateway.url, routes: routes as unknown as Routes });
  const stream = streamOverview(portico, 'getCardOverview' as OverviewId, { id: 7 } as object);
  await expect(stream.next()).rejects.toMatchObject({ problem: { instance: '/bff/v1/card-overview/7' } });
});
