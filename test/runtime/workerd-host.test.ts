import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { startBareWorker } from './bare-worker.ts';
import { killAll } from './node-gateway.ts';
import { HOST_VARIABLES, hostScenarios, scriptUpstream } from './scenarios/host.ts';
import { complaintsIn, type WorkerGateway } from './worker-gateway.ts';

describe('in a host app on workerd', () => {
  let upstream: ScriptedUpstream;
  let [alone, host]: WorkerGateway[] = [];

  beforeAll(async () => {
    upstream = await startUpstream();
    scriptUpstream(upstream);
    const variables = { ...HOST_VARIABLES, UPSTREAM_BASE_URL: upstream.url };
    alone = await startBareWorker(variables);
    host = await startBareWorker(variables, { entry: 'test/runtime/host-worker.ts', probe: '/api/livez' });
  });

  afterAll(async () => {
    await killAll();
    await upstream.close();
  });

  it.for(hostScenarios)('$name', (scenario) => scenario.run({ alone: alone!.url, host: host!.url }));

  it('has heard no complaint of workerd', () => {
    expect([alone, host].flatMap((worker) => complaintsIn(worker!))).toEqual([]);
  });
});
