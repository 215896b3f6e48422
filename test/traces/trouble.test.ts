import { expect, it } from 'vitest';
import { json } from '../support/scripted-upstream.ts';
import { LEAK_MARK, secret } from '../support/secrets.ts';
import { openTraced, type Traced } from './helpers.ts';

const PATH = '/api/v2/subscription/';
const READ = `GET ${PATH}`;
const ANSWER = json(200, { id: 1, plan: 2, payment_method: null });

/** Batches are sent at once. */
const SOON = { OTEL_BSP_SCHEDULE_DELAY: '1' };
/** Less than the pause before the exporter would try again. */
const ONE_TRY = { ...SOON, OTEL_EXPORTER_OTLP_TIMEOUT: '500' };

async function answersAsEver({ upstream, call }: Traced): Promise<void> {
  upstream.on(READ, ANSWER);
  for (let count = 0; count < 20; count++) expect((await call({ path: PATH, token: secret() })).status).toBe(200);
}

const told = ({ lines }: Traced) => lines.map(({ level, msg, reason, host }) => [level, msg, reason, host]);

it('a collector that is away is told of once, and changes nothing', async () => {
  const traced = await openTraced({ variables: { ...ONE_TRY, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' } });
  await answersAsEver(traced);
  await expect.poll(() => traced.lines.length, { timeout: 30_000 }).toBe(1);
  await answersAsEver(traced);
  await traced.told();
  expect(told(traced)).toEqual([['warn', 'trouble with traces', 'ECONNREFUSED', '127.0.0.1:9']]);
});

it('a collector that refuses is told of with its status, and not with what it said', async () => {
  const traced = await openTraced({ variables: SOON, status: 401 });
  await answersAsEver(traced);
  await expect.poll(() => traced.lines.length, { timeout: 30_000 }).toBe(1);
  await traced.told();
  expect(told(traced)).toEqual([['warn', 'trouble with traces', '401', new URL(traced.collector.url).host]]);
  expect(JSON.stringify(traced.lines)).not.toContain(LEAK_MARK);
});

it('a collector that hangs keeps neither answers nor the end waiting, and no more spans than its queue', async () => {
  const traced = await openTraced({
    variables: { ...SOON, OTEL_BSP_MAX_QUEUE_SIZE: '4', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4' },
    status: 0,
  });
  await answersAsEver(traced);
  const from = performance.now();
  await traced.told();
  expect(performance.now() - from).toBeLessThan(9_000); // of the exporter's ten
  expect(traced.collector.spans.length).toBeLessThan(20);
});
