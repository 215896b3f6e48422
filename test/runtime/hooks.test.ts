import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { hasRedis, SKIPPED, startOldRedis, type TestRedis } from '../support/redis.ts';
import { secret } from '../support/secrets.ts';
import { startBareWorker } from './bare-worker.ts';
import { killAll, startNode } from './node-gateway.ts';
import { hooksScenarios, type HooksStage, scriptTokens, untilKept } from './scenarios/hooks.ts';
import { complaintsIn, type WorkerGateway } from './worker-gateway.ts';

const start = (env: Readonly<Record<string, string>>) => startNode(env, [], join(import.meta.dirname, 'hooks-node.ts'));
const FREE = { RATE_LIMIT_PER_MINUTE: '0', ADMIN_PORT: '0' };

let upstream: ScriptedUpstream;
const variables = () => ({ ...FREE, UPSTREAM_BASE_URL: upstream.url });

beforeAll(async () => {
  upstream = await startUpstream();
  scriptTokens(upstream);
});

afterAll(async () => {
  await killAll();
  upstream.assertNoUnexpected();
  await upstream.close();
});

describe('hooks on Node', () => {
  let stage: HooksStage;
  beforeAll(async () => {
    stage = { instances: [(await start(variables())).url], upstream };
  });
  it.for(hooksScenarios)('$name', (scenario) => scenario.run(stage));
});

describe.skipIf(!hasRedis)(`hooks on Node with Redis${SKIPPED}`, () => {
  let redis: TestRedis;
  let stage: HooksStage;
  beforeAll(async () => {
    redis = await startOldRedis();
    const env = { ...variables(), STORE_URL: redis.url, SECRETS: secret('of-instances-with-hooks') };
    const [one, other] = await Promise.all([start(env), start(env)]);
    stage = { instances: [one.url, other.url], upstream };
    await untilKept(stage);
  });
  afterAll(() => redis?.close());
  it.for(hooksScenarios)('$name', (scenario) => scenario.run(stage));
});

describe('hooks on workerd', () => {
  let worker: WorkerGateway;
  let stage: HooksStage;
  beforeAll(async () => {
    worker = await startBareWorker(variables(), { entry: 'test/runtime/hooks-worker.ts' });
    stage = { instances: [worker.url], upstream };
    await untilKept(stage);
  });
  it.for(hooksScenarios)('$name', (scenario) => scenario.run(stage));
  it('have made workerd complain of nothing', () => {
    expect(complaintsIn(worker)).toEqual([]);
  });
});
