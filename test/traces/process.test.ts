import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { json, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { killAll, ROOT, run, startNode, urlIn } from '../runtime/node-gateway.ts';
import { type Collector, openCollector } from '../support/collector.ts';
import { call } from '../support/http.ts';
import { secret } from '../support/secrets.ts';

const ENTRY = join(ROOT, 'src/entry/node.ts');
const PATH = '/api/v2/subscription/';

let upstream: ScriptedUpstream;

beforeEach(async () => {
  upstream = await startUpstream();
  upstream.on(`GET ${PATH}`, json(200, { id: 1, plan: 2, payment_method: null }));
});

afterEach(async () => {
  await killAll();
  await upstream.close();
});

async function collecting(status?: number): Promise<Collector> {
  const collector = await openCollector(status);
  onTestFinished(() => collector.close());
  return collector;
}

const start = (env: Readonly<Record<string, string>>) =>
  startNode({ UPSTREAM_BASE_URL: upstream.url, NODE_ENV: 'production', ...env });

describe('SIGTERM', () => {
  it('sends the spans that are left before the process ends', async () => {
    const collector = await collecting();
    const gateway = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '600000' });
    await call(gateway.url, { path: PATH, token: secret() });
    expect(collector.spans).toEqual([]);
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    expect(collector.spans.map(({ kind }) => kind)).toEqual(['client', 'server']);
  });

  it.each([
    ['hangs', 0],
    ['refuses for now', 503],
  ])('ends the process where the collector %s, and all that it has printed is JSON', async (_, status) => {
    const collector = await collecting(status);
    const gateway = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '10' });
    await call(gateway.url, { path: PATH, token: secret() });
    await collector.until(() => true);
    await call(gateway.url, { path: PATH, token: secret() });
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    const lines = gateway.stdout().trim().split('\n');
    expect(gateway.records()).toHaveLength(lines.length);
    expect(gateway.stderr()).toBe('');
  });
});

/** Says which modules of OpenTelemetry are loaded. */
const TELLING = `
import { registerHooks } from 'node:module';
const tell = (url) => url.includes('@opentelemetry') && console.error('loaded ' + url);
registerHooks({ load: (url, context, next) => (tell(url), next(url, context)) });`;

async function packagesLoaded(env: Readonly<Record<string, string>>): Promise<Set<string | undefined>> {
  const gateway = run({
    env: { PORT: '0', ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.url, ...env },
    command: [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(TELLING)}`, ENTRY],
  });
  await gateway.until(() => urlIn(gateway));
  const found = gateway.stderr().matchAll(/^loaded .*\/node_modules\/(@opentelemetry\/[\w-]+)/gm);
  return new Set(Array.from(found, ([, name]) => name));
}

it('the SDK is loaded where a variable says where spans go, and not else', async () => {
  const collector = await collecting();
  expect(await packagesLoaded({})).toEqual(new Set(['@opentelemetry/api']));
  expect(await packagesLoaded({ OTEL_SERVICE_NAME: 'portico' })).toEqual(new Set(['@opentelemetry/api']));
  expect(await packagesLoaded({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces` })).toContain(
    '@opentelemetry/sdk-trace',
  );
});

it('nor is it where a variable says that there are no traces', async () => {
  const away = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_TRACES_EXPORTER: 'None' };
  expect(await packagesLoaded(away)).toEqual(new Set(['@opentelemetry/api']));
});
