import { afterAll, beforeAll, describe, it } from 'vitest';
import { killAll, startNode } from './node-gateway.ts';
import { startRecordingSandbox } from './recording-sandbox.ts';
import { scenarios } from './scenarios.ts';
import { type Stage, VARIABLES } from './stage.ts';

describe('on Node', () => {
  let stage: Stage;

  beforeAll(async () => {
    const sandbox = await startRecordingSandbox();
    const { url } = await startNode({ ...VARIABLES, ADMIN_PORT: '0', UPSTREAM_BASE_URL: sandbox.url });
    stage = { gateway: url, sandbox };
  });

  afterAll(async () => {
    await killAll();
    await stage.sandbox.close();
  });

  it.for(scenarios)('$name', (scenario) => scenario.run(stage));
});
