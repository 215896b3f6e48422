import { expect } from 'vitest';
import { hold, type Scenario, visit } from '../stage.ts';

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
];
