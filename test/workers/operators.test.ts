import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exposition } from '../metrics/exposition.ts';
import { killAll, type NodeGateway } from '../runtime/node-gateway.ts';
import { call } from '../support/http.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { VersionedUpstream } from '../support/versioned-upstream.ts';
import { type Connection, connectToAll, isReady, startTwo } from './workers.ts';

const REQUESTS = 'portico_requests_total';
const LIMIT = 'portico_upstream_calls_limit';

describe('the admin listener of two workers', () => {
  let upstream: VersionedUpstream;
  let gateway: NodeGateway;
  let [one, other]: Connection[] = [];

  beforeAll(async () => {
    upstream = new VersionedUpstream(await startUpstream());
    gateway = await startTwo(upstream.upstream.url, { UPSTREAM_MAX_CONNECTIONS: '10' });
    [one, other] = await connectToAll(gateway);
  });

  afterAll(async () => {
    await Promise.all([one?.close(), other?.close()]);
    await killAll();
    await upstream.upstream.close();
  });

  const scrape = async () => exposition((await call(gateway.adminUrl, { path: '/metrics' })).text);
  const answered = async () => (await scrape()).value(REQUESTS, { operation: 'getApiKey', status: '2xx' });

  it('adds up what is counted and held in both, and tells of versions and states as one', async () => {
    const token = secret();
    for (const at of [one, one, one, other, other]) await at!.ask('getApiKey', { token });
    expect(await answered()).toBe(5);
    const { value } = await scrape();
    expect(value('portico_upstream_call_duration_seconds_count', { operation: 'getApiKey' })).toBe(5);
    expect(value(LIMIT)).toBe(20);
    expect(value('portico_build_info')).toBe(1);
    expect(value('portico_circuit_open')).toBe(0);
    expect(value('process_start_time_seconds')).toBeLessThanOrEqual(Date.now() / 1000);
  });

  it('never counts less than before, when a worker has died too', async () => {
    const before = await answered();
    process.kill(one!.pid, 'SIGKILL');
    await gateway.until(() => gateway.records().find(({ reason }) => reason === 'SIGKILL'));
    expect(await answered()).toBe(before);
    await expect.poll(() => isReady(gateway), { timeout: 40_000, interval: 20 }).toBe(200);
    await other!.ask('getApiKey', { token: secret() });
    expect(await answered()).toBe(before + 1);
    expect((await scrape()).value(LIMIT)).toBe(20);
  });

  it('has no console, and says why', async () => {
    const { status, json } = await call(gateway.adminUrl, { path: '/console' });
    expect(status).toBe(404);
    expect(json).toMatchObject({ detail: 'The console shows what one process does, and WORKERS has started several.' });
  });
});
