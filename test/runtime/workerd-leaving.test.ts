import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startUpstream } from '../support/scripted-upstream.ts';
import { startBareWorker } from './bare-worker.ts';
import { killAll } from './node-gateway.ts';
import { leavingScenarios, type LeavingStage, PATIENCE } from './scenarios/leaving.ts';
import { complaintsIn, type WorkerGateway } from './worker-gateway.ts';

describe('on workerd, with clients who leave', () => {
  let stage: LeavingStage;
  let worker: WorkerGateway;

  beforeAll(async () => {
    const upstream = await startUpstream();
    worker = await startBareWorker({ ...PATIENCE, UPSTREAM_BASE_URL: upstream.url });
    stage = { gateway: worker, upstream, leave: (socket) => socket.reset() };
  });

  afterAll(async () => {
    await killAll();
    await stage.upstream.close();
  });

  it.for(leavingScenarios)('$name', (scenario) => scenario.run(stage));

  it('hears no complaint of workerd for all that', () => {
    expect(complaintsIn(worker)).toEqual([]);
  });
});
