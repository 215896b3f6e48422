import { afterAll, beforeAll, describe, it } from 'vitest';
import { startUpstream } from '../support/scripted-upstream.ts';
import { killAll, startNode } from './node-gateway.ts';
import { play } from './play.ts';
import { startRecordingSandbox } from './recording-sandbox.ts';
import { leavingScenarios, type LeavingStage, PATIENCE } from './scenarios/leaving.ts';
import { type Stage, VARIABLES } from './stage.ts';

describe('on Node', () => {
  let stage: Stage;

  beforeAll(async () => {
    const sandbox = await startRecordingSandbox();
    const log = await startNode({ ...VARIABLES, ADMIN_PORT: '0', UPSTREAM_BASE_URL: sandbox.url });
    stage = { gateway: log.url, sandbox, log };
  });

  afterAll(async () => {
    await killAll();
    await stage.sandbox.close();
  });

  play('Node', () => stage);
});

describe('on Node, with clients who leave', () => {
  let stage: LeavingStage;

  beforeAll(async () => {
    const upstream = await startUpstream();
    const gateway = await startNode({ ...PATIENCE, ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.url });
    stage = { gateway, upstream, leave: (socket) => socket.destroy() };
  });

  afterAll(async () => {
    await killAll();
    await stage.upstream.close();
  });

  it.for(leavingScenarios)('$name', (scenario) => scenario.run(stage));
});
