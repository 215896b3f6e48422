import { afterAll, beforeAll, describe, it } from 'vitest';
import { startUpstream } from '../support/scripted-upstream.ts';
import { startBareWorker } from './bare-worker.ts';
import { killAll } from './node-gateway.ts';
import { leavingScenarios, type LeavingStage, PATIENCE } from './scenarios/leaving.ts';

describe('on workerd, with clients who leave', () => {
  let stage: LeavingStage;

  beforeAll(async () => {
    const upstream = await startUpstream();
    const gateway = await startBareWorker({ ...PATIENCE, UPSTREAM_BASE_URL: upstream.url });
    stage = { gateway, upstream, leave: (socket) => socket.reset() };
  });

  afterAll(async () => {
    await killAll();
    await stage.upstream.close();
  });

  it.for(leavingScenarios)('$name', (scenario) => scenario.run(stage));
});
