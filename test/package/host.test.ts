import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { killAll, ROOT } from '../runtime/node-gateway.ts';
import { HOST_VARIABLES, hostScenarios, type HostStage, scriptUpstream } from '../runtime/scenarios/host.ts';
import { installed, startIn } from './installed.ts';

/** Alone, and in the host of the other tests. */
const APPS = { alone: '(app: Hono<never>) => app', host: 'hostOf' };

/** A file that serves it, by the runtime. */
const FILES = {
  node: (around: string) => `
    import { portico } from 'portico';
    import { fromEnv, serve } from 'portico/node';
    import { overviews, proxyAccount as rows } from 'portico/proxy-account';
    import { hostOf } from './host-app.ts';
    const gateway = portico({ ...fromEnv(process.env), rows, overviews });
    await serve((${around})(gateway.app), gateway);`,
  workerd: (around: string) => `
    import { portico } from 'portico';
    import { overviews, proxyAccount as rows } from 'portico/proxy-account';
    import { worker } from 'portico/worker';
    import { hostOf } from './host-app.ts';
    export { Account } from 'portico/worker';
    export default worker((options) => (${around})(portico({ ...options, rows, overviews }).app));`,
};

let folder: string;
let upstream: ScriptedUpstream;

beforeAll(async () => {
  folder = installed();
  cpSync(join(ROOT, 'test/runtime/host-app.ts'), join(folder, 'host-app.ts'));
  upstream = await startUpstream();
  scriptUpstream(upstream);
});

afterAll(async () => {
  await killAll();
  await upstream.close();
});

describe.for(['node', 'workerd'] as const)('the package in a host app on %s', (runtime) => {
  let stage: HostStage;

  beforeAll(async () => {
    const variables = { ...HOST_VARIABLES, UPSTREAM_BASE_URL: upstream.url };
    const start = async (name: keyof typeof APPS) => {
      const file = `${name}-${runtime}.ts`;
      writeFileSync(join(folder, file), FILES[runtime](APPS[name]));
      return startIn[runtime](folder, variables, file);
    };
    const [alone, host] = await Promise.all([start('alone'), start('host')]);
    stage = { alone, host };
  });

  it.for(hostScenarios)('$name', (scenario) => scenario.run(stage));
});
