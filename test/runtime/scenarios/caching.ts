import { expect } from 'vitest';
import { call } from '../../support/http.ts';
import { eventually, type Scenario, visit } from '../stage.ts';

const PATH = '/api/v2/subscription/';

export const cachingScenarios: readonly Scenario[] = [
  {
    name: 'the first read asks the upstream, the second one the cache, and the client that has it gets 304',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const miss = await visitor.call({ path: PATH });
      expect(miss.headers).toMatchObject({
        'cache-status': 'portico; fwd=miss; stored',
        'cache-control': 'private, no-cache',
        age: '0',
      });
      const hit = await visitor.call({ path: PATH });
      expect(hit.headers['cache-status']).toMatch(/^portico; hit; ttl=(2\d|30)$/);
      expect([hit.text, hit.headers['etag']]).toEqual([miss.text, miss.headers['etag']]);
      const etag = miss.headers['etag'] ?? '';
      expect(etag).toMatch(/^"[^"]+"$/);
      const same = await visitor.call({ path: PATH, headers: { 'if-none-match': etag } });
      expect([same.status, same.text, same.headers['etag']]).toEqual([304, '', etag]);
      expect(same.headers).not.toHaveProperty('content-type');
      expect(await visitor.upstreamCalls()).toEqual(['getSubscription']);
    },
  },
  {
    name: 'no-cache has a fresh copy stored, no-store none',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const read = (cacheControl: string) =>
        visitor.call({ path: PATH, headers: cacheControl ? { 'cache-control': cacheControl } : {} });
      await read('no-store');
      expect((await read('')).headers['cache-status']).toBe('portico; fwd=miss; stored');
      expect((await read('no-cache')).headers['cache-status']).toBe('portico; fwd=request; stored');
      expect((await read('')).headers['cache-status']).toMatch(/hit/);
      expect(await visitor.upstreamCalls()).toHaveLength(3);
    },
  },
  {
    name: 'two credentials never share a copy, even of one account',
    async run(stage) {
      const [paid, again, other] = [
        await visit(stage, 'paid'),
        await visit(stage, 'paid'),
        await visit(stage, 'affiliate'),
      ];
      await paid.call({ path: PATH });
      expect((await again.call({ path: PATH })).headers['cache-status']).toMatch(/fwd=miss/);
      expect((await other.call({ path: PATH })).json).toMatchObject({ id: 3005 });
      expect((await paid.call({ path: PATH })).json).toMatchObject({ id: 1005 });
    },
  },
  {
    name: 'a PATCH is seen by every read after it',
    async run(stage) {
      const visitor = await visit(stage, 'unverified');
      const path = '/api/v2/referral/config/';
      const overview = '/bff/v1/referral-overview';
      const before = await visitor.call({ path });
      await visitor.call({ path: overview });
      expect(before.json).toMatchObject({ mode: 'credits' });
      const patched = await visitor.call({ method: 'PATCH', path, body: { mode: 'payout' } });
      const after = await visitor.call({ path });
      expect(after.text).toBe(patched.text);
      expect(after.headers['cache-status']).toBe('portico; fwd=miss; stored');
      expect(after.headers['etag']).not.toBe(before.headers['etag']);
      expect((await visitor.call({ path: overview })).json).toMatchObject({
        data: { referral_config: { mode: 'payout' } },
      });
      // What the write did not touch is still held.
      expect((await visitor.upstreamCalls()).filter((operation) => operation === 'listEarnOuts')).toHaveLength(1);
    },
  },
  {
    name: 'a stale copy is given at once and renewed behind it',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const path = '/api/v2/subuser/1081/';
      const old = await visitor.call({ path });
      await call(stage.sandbox.url, { path: '/_sandbox/clock', body: { advanceSeconds: 60 } });
      await visitor.direct({ method: 'POST', path: `${path}refresh/` });
      const stale = await visitor.call({ path });
      expect(stale.headers['cache-status']).toMatch(/^portico; hit; ttl=(-\d+|0)$/);
      expect(stale.text).toBe(old.text);
      const { text: renewed } = await visitor.direct({ path });
      expect(renewed).not.toBe(old.text);
      await eventually(async () => expect((await visitor.call({ path })).text).toBe(renewed));
    },
  },
  {
    name: 'what is never cached is asked for each time',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      for (let time = 0; time < 2; time++) {
        const answer = await visitor.call({ path: '/api/v2/payment/pending/1303/' });
        expect(answer.headers['cache-control']).toBe('no-store');
        expect(answer.headers).toHaveProperty('etag'); // for who waits for a change
      }
      expect(await visitor.upstreamCalls()).toHaveLength(2);
    },
  },
];
