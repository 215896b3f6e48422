import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from '../support/http.ts';
import { LEAK_MARK } from '../support/secrets.ts';
import { killAll } from './node-gateway.ts';
import { play } from './play.ts';
import { type RecordingSandbox, startRecordingSandbox } from './recording-sandbox.ts';
import { type Stage, VARIABLES } from './stage.ts';
import { complaintsIn, objectsAwake, startWorker, type WorkerGateway } from './worker-gateway.ts';

const PUBLIC = 'for-this-machine-only-0123456789abcdef';

let sandbox: RecordingSandbox;
let [behind, inside, without]: WorkerGateway[] = [];

// Each takes seconds to start.
beforeAll(async () => {
  sandbox = await startRecordingSandbox();
  [behind, inside, without] = await Promise.all([
    startWorker({ ...VARIABLES, SANDBOX: 'false', UPSTREAM_BASE_URL: sandbox.url }),
    startWorker({ SANDBOX: 'true' }),
    startWorker({ SANDBOX: 'false', PORT: LEAK_MARK, LOG_LEVEL: LEAK_MARK, NODE_ENV: 'production', SECRETS: PUBLIC }),
  ]);
  await Promise.all([behind, inside].map((one) => objectsAwake(one.url, 'sandbox-nocard-key')));
});

afterAll(async () => {
  await killAll();
  await sandbox.close();
});

const stage = (): Stage => ({ gateway: behind!.url, sandbox, log: behind! });

describe('on workerd', () => {
  play('workerd', stage);

  it('has heard no complaint of workerd or wrangler', () => {
    expect(complaintsIn(behind!)).toEqual([]);
  });
});

describe('on workerd with the sandbox inside', () => {
  const token = 'sandbox-paid-key';

  it('answers an overview, then from the cache', async () => {
    const path = '/bff/v1/account-overview';
    const cold = await call(inside!.url, { path, token });
    expect([cold.status, cold.json]).toMatchObject([
      200,
      { data: { subscription: { id: 1005 }, payment_method: { id: 1071 } }, meta: { complete: true } },
    ]);
    expect((await call(inside!.url, { path, token })).headers['cache-status']).toMatch(/^portico; hit/);
  });

  it('has state: what a PATCH wrote is read afterwards', async () => {
    const path = '/api/v2/referral/config/';
    await call(inside!.url, { path, token });
    expect(await call(inside!.url, { method: 'PATCH', path, token, body: { mode: 'payout' } })).toMatchObject({
      status: 200,
    });
    expect((await call(inside!.url, { path, token })).json).toMatchObject({ mode: 'payout' });
  });

  it('links its pages to itself', async () => {
    const { json } = await call(inside!.url, { path: '/api/v2/referral/credit/', token: 'sandbox-affiliate-key' });
    expect(json).toMatchObject({ count: 240, next: `${inside!.url}/api/v2/referral/credit/?page=2` });
  });

  it('does not show the control endpoints of the sandbox', async () => {
    expect(await call(inside!.url, { path: '/_sandbox/calls' })).toMatchObject({ status: 404 });
  });

  it('has heard no complaint of workerd or wrangler', () => {
    expect(complaintsIn(inside!)).toEqual([]);
  });
});

describe('on workerd without an upstream', () => {
  it('answers 500, and names every bad variable in the log without its value', async () => {
    expect((await call(without!.url, { path: '/livez' })).status).toBe(500);
    const printed = () => without!.stdout() + without!.stderr();
    await without!.until(() => (printed().includes('LOG_LEVEL: expected') ? true : undefined));
    expect(printed()).toMatch(/^ *PORT: expected an integer/m);
    expect(printed()).toMatch(/^ *UPSTREAM_BASE_URL: expected a URL, since NODE_ENV is production/m);
    expect(printed()).toMatch(/^ *SECRETS: expected entry 1 to be a secret of your own/m);
    expect(printed()).not.toContain(LEAK_MARK);
  });
});
