import { expect, onTestFinished, test } from 'vitest';
import { ENTRY, run, startNode, urlIn } from '../support/process.ts';
import { openSocket, requestText } from '../support/raw-client.ts';

const NOBODY = { UPSTREAM_BASE_URL: 'http://127.0.0.1:1', ADMIN_PORT: '0' };
const DESCRIPTORS = 300;
const PROBE = requestText({ target: '/livez' });

test('beyond the descriptors that the process may have, connections are closed, and those that are there go on', async () => {
  const limited = `ulimit -n ${DESCRIPTORS}; exec "$@"`;
  const env = { UPSTREAM_BASE_URL: NOBODY.UPSTREAM_BASE_URL, UPSTREAM_MAX_CONNECTIONS: '20' };
  const gateway = await startNode(env, { command: ['sh', '-c', limited, 'sh', process.execPath, ENTRY] });
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  expect(metrics).toContain(`portico_connections_limit ${DESCRIPTORS - 2 * 20 - 128}\n`); // reads have connections, and writes
  const known = await openSocket(gateway.port);
  const sockets = await Promise.all(Array.from({ length: DESCRIPTORS }, () => openSocket(gateway.port)));
  onTestFinished(() => [known, ...sockets].forEach((socket) => socket.destroy()));
  await Promise.race(sockets.map(({ closed }) => closed));
  await known.write(PROBE);
  expect((await known.readResponse()).status).toBe(200);
  expect(gateway.stderr()).toBe('');
});

/** Says which modules of OpenTelemetry are loaded. */
const TELLING = `
import { registerHooks } from 'node:module';
const tell = (url) => url.includes('@opentelemetry') && console.error('loaded ' + url);
registerHooks({ load: (url, context, next) => (tell(url), next(url, context)) });`;

test.each([
  [{}, false],
  [{ OTEL_SERVICE_NAME: 'portico' }, false],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_TRACES_EXPORTER: 'None' }, false],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:9/v1/traces' }, true],
])('the SDK of OpenTelemetry is loaded with %o: %s', async (env, is) => {
  const preload = `data:text/javascript,${encodeURIComponent(TELLING)}`;
  const command = [process.execPath, '--import', preload, ENTRY] as const;
  const gateway = run({ ...NOBODY, PORT: '0', ...env }, { command });
  await gateway.until(() => urlIn(gateway.records()));
  expect(gateway.stderr().includes('@opentelemetry/sdk-trace')).toBe(is);
});

test('a SIGINT that comes with the first is the same one: npm passes on what it gets', async () => {
  const gateway = await startNode({ ...NOBODY, SHUTDOWN_DELAY_MS: '600000' });
  for (let times = 0; times < 2; times++) gateway.signal('SIGINT');
  await gateway.line(({ msg }) => msg === 'stopping');
  const socket = await openSocket(gateway.port);
  await socket.write(PROBE);
  expect((await socket.readResponse()).status).toBe(200);
  socket.destroy();
});
