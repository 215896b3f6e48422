import { expect } from 'vitest';
import { hold, type Scenario, settled, visit } from '../stage.ts';

const PATH = '/api/v2/subscription/';

export const concurrencyScenarios: readonly Scenario[] = [
  {
    name: 'a hundred equal reads at once cost one upstream call',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const at = await hold(stage, 'getSubscription');
      const reads = Array.from({ length: 100 }, () => visitor.call({ path: PATH }));
      await at.reached;
      at.release();
      const answers = await Promise.all(reads);
      expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
      expect(answers.filter(({ headers }) => headers['cache-status'] === 'portico; fwd=miss; stored')).toHaveLength(1);
      expect(await visitor.upstreamCalls()).toEqual(['getSubscription']);
    },
  },
  {
    name: 'fifty different readers at once each get their own answer',
    async run(stage) {
      const names = ['paid', 'paused', 'affiliate', 'nocard'] as const;
      const readers = await Promise.all(
        Array.from({ length: 50 }, (_, index) => visit(stage, names[index % names.length] ?? 'paid')),
      );
      const answers = await Promise.all(readers.map((reader) => reader.call({ path: PATH })));
      const truth = await Promise.all(readers.slice(0, names.length).map((reader) => reader.direct({ path: PATH })));
      for (const [index, { text }] of answers.entries()) expect(text).toBe(truth[index % names.length]?.text);
    },
  },
  {
    name: 'a reader who leaves takes nothing from the others who wait for the same',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const at = await hold(stage, 'getSubscription');
      const leaving = new AbortController();
      const first = visitor.call({ path: PATH, signal: leaving.signal });
      const gone = expect(first).rejects.toThrow();
      await at.reached;
      const others = [visitor.call({ path: PATH }), visitor.call({ path: PATH })];
      await settled(stage);
      leaving.abort();
      await gone;
      await settled(stage);
      at.release();
      for (const { status, headers } of await Promise.all(others)) {
        expect([status, headers['cache-status']]).toEqual([200, 'portico; fwd=miss; stored; collapsed']);
      }
      expect(await visitor.upstreamCalls()).toEqual(['getSubscription']);
    },
  },
  {
    name: 'when the last reader leaves, the upstream call is ended',
    async run(stage) {
      const visitor = await visit(stage, 'paid');
      const at = await hold(stage, 'getSubscription');
      const left = stage.sandbox.left(visitor.nextId());
      const leaving = new AbortController();
      const only = expect(visitor.call({ path: PATH, signal: leaving.signal })).rejects.toThrow();
      await at.reached;
      leaving.abort();
      await only;
      await left;
      at.release();
      expect(await visitor.call({ path: PATH })).toMatchObject({ status: 200 });
    },
  },
  {
    name: 'a write goes on when its client has left',
    async run(stage) {
      const visitor = await visit(stage, 'affiliate');
      const path = '/api/v2/referral/config/';
      const at = await hold(stage, 'updateReferralConfig');
      const id = visitor.nextId();
      let isCut = false;
      void stage.sandbox.left(id).then(() => (isCut = true));
      const leaving = new AbortController();
      const write = visitor.call({ method: 'PATCH', path, body: { mode: 'payout' }, signal: leaving.signal });
      const gone = expect(write).rejects.toThrow();
      await at.reached;
      leaving.abort();
      await gone;
      await settled(stage);
      at.release();
      await expect.poll(() => stage.sandbox.sentTo(id), { timeout: 5_000 }).toMatchObject([{ status: 200 }]);
      await settled(stage);
      expect(isCut).toBe(false);
      expect((await visitor.call({ path })).json).toMatchObject({ mode: 'payout' });
    },
  },
];
