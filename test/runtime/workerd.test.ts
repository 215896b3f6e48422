import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from '../support/http.ts';
import { LEAK_MARK } from '../support/secrets.ts';
import { play } from './play.ts';
import { startRecordingSandbox } from './recording-sandbox.ts';
import { type Stage, VARIABLES } from './stage.ts';
import { complaintsIn, startWorker, type WorkerGateway } from './worker-gateway.ts';

describe('on workerd', () => {
  let stage: Stage;
  let worker: WorkerGateway;

  beforeAll(async () => {
    const sandbox = await startRecordingSandbox();
    worker = await startWorker({ ...VARIABLES, SANDBOX: 'false', UPSTREAM_BASE_URL: sandbox.url });
    stage = { gateway: worker.url, sandbox, log: worker };
  });

  afterAll(async () => {
    await worker.kill();
    await stage.sandbox.close();
  });

  play('workerd', () => stage);

  it('has heard no complaint of workerd or wrangler', () => {
    expect(complaintsIn(worker)).toEqual([]);
  });
});

describe('on workerd with the sandbox inside', () => {
  let worker: WorkerGateway;
  const token = 'sandbox-paid-key';

  beforeAll(async () => {
    worker = await startWorker({ SANDBOX: 'true' });
  });

  afterAll(() => worker.kill());

  it('answers an overview, then from the cache', async () => {
    const path = '/bff/v1/account-overview';
    const cold = await call(worker.url, { path, token });
    expect([cold.status, cold.json]).toMatchObject([
      200,
      { data: { subscription: { id: 1005 }, payment_method: { id: 1071 } }, meta: { complete: true } },
    ]);
    expect((await call(worker.url, { path, token })).headers['cache-status']).toMatch(/^portico; hit/);
  });

  it('has state: what a PATCH wrote is read afterwards', async () => {
    const path = '/api/v2/referral/config/';
    await call(worker.url, { path, token });
    expect(await call(worker.url, { method: 'PATCH', path, token, body: { mode: 'payout' } })).toMatchObject({
      status: 200,
    });
    expect((await call(worker.url, { path, token })).json).toMatchObject({ mode: 'payout' });
  });

  it('links its pages to itself', async () => {
    const { json } = await call(worker.url, { path: '/api/v2/referral/credit/', token: 'sandbox-affiliate-key' });
    expect(json).toMatchObject({ count: 240, next: `${worker.url}/api/v2/referral/credit/?page=2` });
  });

  it('does not show the control endpoints of the sandbox', async () => {
    expect(await call(worker.url, { path: '/_sandbox/calls' })).toMatchObject({ status: 404 });
  });

  it('has heard no complaint of workerd or wrangler', () => {
    expect(complaintsIn(worker)).toEqual([]);
  });
});

describe('on workerd without an upstream', () => {
  let worker: WorkerGateway;

  beforeAll(async () => {
    worker = await startWorker({ SANDBOX: 'false', PORT: LEAK_MARK, LOG_LEVEL: LEAK_MARK });
  });

  afterAll(() => worker.kill());

  it('answers 500, and names every bad variable in the log without its value', async () => {
    expect((await call(worker.url, { path: '/livez' })).status).toBe(500);
    const printed = () => worker.stdout() + worker.stderr();
    await worker.until(() => (printed().includes('LOG_LEVEL: expected') ? true : undefined));
    expect(printed()).toMatch(/^ *PORT: expected an integer/m);
    expect(printed()).not.toContain(LEAK_MARK);
  });
});
