import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call } from '../../support/http.ts';
import { killAll } from '../../support/process.ts';
import { Upstream } from '../../support/upstream.ts';
import { installed, startIn } from './installed.ts';

const APPS = { alone: '(app: Hono<never>) => app', host: 'hostOf' };

const IMPORTS = `
    import { portico } from 'portico';
    import { overviews, proxyAccount as rows } from 'portico/proxy-account';
    import { hostOf } from './host-app.ts';`;

/** A file that serves it, by the runtime. */
const FILES = {
  node: (around: string) => `${IMPORTS}
    import { fromEnv, serve } from 'portico/node';
    const gateway = portico({ ...fromEnv(process.env), rows, overviews });
    await serve((${around})(gateway.app), gateway);`,
  workerd: (around: string) => `${IMPORTS}
    import { worker } from 'portico/worker';
    export { Account } from 'portico/worker';
    export default worker((options) => (${around})(portico({ ...options, rows, overviews }).app));`,
};

const steady = (text: string) => text.replaceAll(/"age":\d+/g, '"age":0');

afterAll(killAll);

describe.each(['node', 'workerd'] as const)('the package in a host app on %s', (runtime) => {
  const urls = { alone: '', host: '' };
  const asking = { token: `key-on-${runtime}`, headers: { 'x-request-id': 'the-same' } };

  beforeAll(async () => {
    const [folder, upstream] = [installed(), await new Upstream().listen()];
    cpSync(join(import.meta.dirname, 'host-app.ts'), join(folder, 'host-app.ts'));
    for (const name of ['alone', 'host'] as const) {
      writeFileSync(join(folder, `${name}.ts`), FILES[runtime](APPS[name]));
      urls[name] = await startIn[runtime](folder, { UPSTREAM_BASE_URL: upstream.url }, `${name}.ts`);
    }
    return () => upstream.close();
  });

  const PATHS = ['/api/v2/subscription/', '/bff/v1/account-overview', '/api/v2/nothing/', '/problems/not_found'];
  test.each(PATHS)('%s is what it is alone', async (path) => {
    const alone = await call(urls.alone, { path, ...asking });
    const host = await call(urls.host, { path: `/api${path}`, ...asking });
    const below = alone.text.replaceAll(/"(type|instance)":"\//g, '"$1":"/api/');
    expect([host.status, steady(host.text)]).toEqual([path.includes('nothing') ? 404 : 200, steady(below)]);
    expect(host.headers).toMatchObject({ 'x-host': 'the host', 'x-request-id': 'the-same' });
  });

  test('all else is the host’s', async () => {
    for (const path of ['/livez', '/api/nothing', '/own/file']) {
      const { headers, text } = await call(urls.host, { path, ...asking });
      const is = path === '/own/file' ? 'file' : 'not here';
      expect([text, headers['x-host'], headers['x-request-id']]).toEqual([is, 'the host', undefined]);
    }
  });
});
