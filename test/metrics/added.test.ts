import { Counter, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { added, measureProcess } from '../../src/entry/node/metrics/measured.ts';
import { exposition } from './exposition.ts';

test('of several processes the latest loop counts, the first start, and the memory of all', async () => {
  const measured = await measureProcess();
  const where = (values: Readonly<Record<string, number>>) =>
    measured.map((one) => ({ ...one, values: [{ labels: {}, value: values[one.name] ?? 0 }] }));
  const idle = where({
    process_start_time_seconds: 100,
    nodejs_eventloop_lag_p99_seconds: 0.01,
    process_heap_bytes: 1,
  });
  const busy = where({ process_start_time_seconds: 200, nodejs_eventloop_lag_p99_seconds: 0.7, process_heap_bytes: 2 });
  const { value } = exposition((await added([idle, busy, idle]).scraped()).text);
  expect(value('process_start_time_seconds')).toBe(100);
  expect(value('nodejs_eventloop_lag_p99_seconds')).toBe(0.7);
  expect(value('process_heap_bytes')).toBe(4);
});

function counted(seconds: number) {
  const registry = new Registry();
  new Counter({ name: 's_total', help: 'Some.', registers: [registry] }).inc(seconds);
  return registry.getMetricsAsJSON();
}

const sumOf = async (all: Parameters<typeof added>[0]) =>
  exposition((await added(all).scraped()).text).value('s_total');

test('what processes have counted is the same sum in whatever order they end', async () => {
  const [a, b, c] = await Promise.all([0.1, 0.2, 0.3].map(counted));
  const gone = await added([b!, c!]).measured();
  expect(await sumOf([gone, a!])).toBe(await sumOf([a!, b!, c!]));
});
