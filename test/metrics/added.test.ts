import { Counter, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { added } from '../../src/entry/node/metrics/index.ts';

const measured = (seconds: number) => {
  const registry = new Registry();
  new Counter({ name: 'seconds_total', help: 'Some.', registers: [registry] }).inc(seconds);
  return registry.getMetricsAsJSON();
};

const textOf = async (all: Parameters<typeof added>[0]) => (await added(all).scraped()).text;

test('what processes have counted is the same sum in whatever order they end', async () => {
  const [a, b, c] = await Promise.all([0.1, 0.2, 0.3].map(measured));
  const first = await textOf([a!, b!, c!]);
  const bGone = await added([b!, c!]).measured();
  expect(await textOf([bGone, a!])).toBe(first);
  expect(first).toContain('seconds_total 0.6');
});
