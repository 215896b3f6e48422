import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasRedis, SKIPPED, startOldRedis, type TestRedis } from '../support/redis.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { leaksIn, secret } from '../support/secrets.ts';
import { killAll, startNode } from './node-gateway.ts';
import { play } from './play.ts';
import { startRecordingSandbox } from './recording-sandbox.ts';
import { leavingScenarios, type LeavingStage, PATIENCE } from './scenarios/leaving.ts';
import { type Stage, VARIABLES } from './stage.ts';

const SECRETS = secret('of-the-instances-themselves');

describe.skipIf(!hasRedis)(`on Node with Redis${SKIPPED}`, () => {
  let redis: TestRedis;
  let stage: Stage;

  beforeAll(async () => {
    redis = await startOldRedis();
    const sandbox = await startRecordingSandbox();
    const log = await startNode({
      ...VARIABLES,
      ADMIN_PORT: '0',
      UPSTREAM_BASE_URL: sandbox.url,
      STORE_URL: redis.url,
      SECRETS,
    });
    stage = { gateway: log.url, sandbox, log };
  });

  afterAll(async () => {
    await killAll();
    await stage.sandbox.close();
    await redis.close();
  });

  play('Node', () => stage);

  it('has kept all that in Redis, and no credential, code or e-mail address of it', async () => {
    const kept = await redis.dump();
    expect(kept.length).toBeGreaterThan(100);
    const text = Buffer.concat(kept).toString('latin1');
    expect(leaksIn(text)).toEqual([]);
    expect(text).not.toMatch(/sandbox-|@wallet/);
  });
});

describe.skipIf(!hasRedis)(`on Node with Redis, with clients who leave${SKIPPED}`, () => {
  let redis: TestRedis;
  let stage: LeavingStage;

  beforeAll(async () => {
    redis = await startOldRedis();
    const upstream = await startUpstream();
    const env = { ...PATIENCE, ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.url, STORE_URL: redis.url, SECRETS };
    stage = { gateway: await startNode(env), upstream, leave: (socket) => socket.destroy() };
  });

  afterAll(async () => {
    await killAll();
    await stage.upstream.close();
    await redis.close();
  });

  it.for(leavingScenarios)('$name', (scenario) => scenario.run(stage));
});
