import { execFile } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { call } from '../support/http.ts';
import { json, startUpstream } from '../support/scripted-upstream.ts';
import { LEAK_MARK, leaksIn, secret } from '../support/secrets.ts';
import { killAll, ROOT, run, startNode, urlIn } from './node-gateway.ts';
import { freePort } from '../support/ports.ts';

/** `EX_CONFIG` of sysexits.h. */
const BAD_CONFIG = 78;

afterEach(killAll);

/** Runs a line as if pasted into a shell. */
async function paste(line: string): Promise<{ head: string; body: string }> {
  const { stdout } = await promisify(execFile)('sh', ['-c', line.replace('curl', 'curl -s')]);
  const end = stdout.indexOf('\r\n\r\n');
  return { head: stdout.slice(0, end), body: stdout.slice(end + 4) };
}

describe('npm start without variables', () => {
  it('prints a curl that works as it stands, and is answered from the cache the second time', async () => {
    const [port, adminPort] = [String(await freePort()), String(await freePort())];
    const npm = run({ cwd: ROOT, env: { PORT: port, ADMIN_PORT: adminPort }, command: ['npm', 'start'] });
    const line = await npm.until(() => /^\s*(curl .*)$/m.exec(npm.stdout())?.[1]);
    expect(line).toContain(`http://127.0.0.1:${port}/`);
    await npm.until(() => urlIn(npm));
    const first = await paste(line);
    expect(first.head).toMatch(/^HTTP\/1\.1 200 /);
    expect(JSON.parse(first.body)).toMatchObject({ data: { subscription: { id: 1005 } }, meta: { complete: true } });
    const second = await paste(line);
    expect(second.head).toMatch(/^Cache-Status: portico; hit; ttl=\d+\r?$/im);
    expect((await call(`http://127.0.0.1:${adminPort}`, { path: '/readyz' })).status).toBe(200);
  });
});

describe('bad variables', () => {
  it('are all named with what was expected, without a value, before anything listens', async () => {
    const port = String(await freePort());
    const bad = {
      ADMIN_PORT: LEAK_MARK,
      UPSTREAM_BASE_URL: `http://user:${secret('password')}@127.0.0.1:${port}`,
      UPSTREAM_TIMEOUT_MS: LEAK_MARK,
      PUBLIC_URL: `https://gateway.example/?${LEAK_MARK}`,
      ALLOWED_ORIGINS: `https://app.example/${LEAK_MARK}`,
      CACHE_POLICY: `{"getSubscription":"${LEAK_MARK}"}`,
      LOG_LEVEL: LEAK_MARK,
      SHUTDOWN_GRACE_MS: '-1',
    };
    const process = run({ env: { PORT: port, ...bad } });
    expect(await process.exited).toBe(BAD_CONFIG);
    const printed = process.stdout() + process.stderr();
    for (const name of Object.keys(bad)) expect(printed).toMatch(new RegExp(`^${name}: expected \\S`, 'm'));
    expect(printed).not.toMatch(/^PORT:/m);
    expect(printed).not.toContain(LEAK_MARK);
    expect(process.records()).toEqual([]);
    await expect(call(`http://127.0.0.1:${port}`, { path: '/livez' })).rejects.toThrow('ECONNREFUSED');
  });

  it('are not those that are empty: an empty variable counts as unset', async () => {
    const names = ['UPSTREAM_BASE_URL', 'CACHE_POLICY', 'LOG_LEVEL', 'NODE_ENV', 'PUBLIC_URL', 'UPSTREAM_TIMEOUT_MS'];
    const { url } = await startNode({ ADMIN_PORT: '0', ...Object.fromEntries(names.map((name) => [name, ''])) });
    expect((await call(url, { path: '/api/v2/subscription/', token: 'sandbox-paid-key' })).status).toBe(200);
  });

  it.each([{}, { UPSTREAM_BASE_URL: '' }])('are a missing upstream in production %o', async (env) => {
    const process = run({ env: { NODE_ENV: 'production', PORT: '0', ADMIN_PORT: '0', ...env } });
    expect(await process.exited).toBe(BAD_CONFIG);
    expect(process.stderr()).toMatch(/^UPSTREAM_BASE_URL: expected a URL/m);
    expect(process.stdout()).toBe('');
  });
});

describe('SANDBOX_PORT', () => {
  it('is where the sandbox listens, and stays there when the gateway is started again', async () => {
    const env = { PORT: '0', ADMIN_PORT: '0', SANDBOX_PORT: String(await freePort()) };
    const calls = `http://127.0.0.1:${env.SANDBOX_PORT}`;
    for (let starts = 0; starts < 2; starts++) {
      const process = run({ env });
      await process.until(() => urlIn(process));
      expect((await call(calls, { path: '/_sandbox/calls' })).status).toBe(200);
      process.signal('SIGTERM');
      expect(await process.exited).toBe(0);
    }
  });

  it('that is taken stops the start, and names the variable', async () => {
    const taken = await startNode({ ADMIN_PORT: '0' });
    const process = run({ env: { PORT: '0', ADMIN_PORT: '0', SANDBOX_PORT: new URL(taken.url).port } });
    expect(await process.exited).toBe(1);
    expect(process.stderr()).toMatch(/^SANDBOX_PORT: cannot listen on .*: it is already in use$/m);
  });
});

/** Contract section 9, and pino's own `msg`. */
const ALWAYS =
  'time level msg request_id trace_id method route status duration_ms upstream_calls upstream_ms client'.split(' ');
const OF_AN_OPERATION = ['operation', 'account', 'cache'];

describe('in production', () => {
  it('standard output is JSON lines alone, one a request, with the documented fields and no more', async () => {
    const upstream = await startUpstream();
    upstream.on('GET /api/v2/subscription/', json(200, { id: 1, plan: 2, payment_method: null }));
    upstream.on('GET /api/v2/apikey/1/', json(404, { detail: 'Not found.' }));
    const gateway = await startNode({ NODE_ENV: 'production', UPSTREAM_BASE_URL: upstream.url });
    const token = secret();
    const headers = { 'x-request-id': 'of-the-client', cookie: `sid=${LEAK_MARK}`, 'user-agent': LEAK_MARK };
    await call(gateway.url, { path: `/api/v2/subscription/?email=${LEAK_MARK}`, token, headers });
    await call(gateway.url, { path: '/api/v2/apikey/1/', token, headers });
    await call(gateway.url, { path: `/${LEAK_MARK}`, token, headers });
    const ofThem = () => gateway.records().filter((record) => record['request_id'] === 'of-the-client');
    await gateway.until(() => (ofThem().length >= 3 ? true : undefined));
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    await upstream.close();

    const [read, refused, unknown, ...more] = ofThem();
    expect(more).toEqual([]);
    expect(Object.keys(read ?? {}).toSorted()).toEqual([...ALWAYS, ...OF_AN_OPERATION].toSorted());
    expect(Object.keys(refused ?? {}).toSorted()).toEqual(
      [...ALWAYS, ...OF_AN_OPERATION.slice(0, 2), 'code'].toSorted(),
    );
    expect(Object.keys(unknown ?? {}).toSorted()).toEqual([...ALWAYS, 'code'].toSorted());
    expect(read).toMatchObject({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as unknown,
      trace_id: expect.stringMatching(/^[0-9a-f]{32}$/) as unknown,
      method: 'GET',
      route: '/api/v2/subscription/',
      status: 200,
      duration_ms: expect.any(Number) as unknown,
      operation: 'getSubscription',
      cache: 'miss',
      upstream_calls: 1,
    });
    expect(refused).toMatchObject({ status: 404, code: 'not_found', route: '/api/v2/apikey/{id}/' });
    expect(unknown).toMatchObject({ status: 404, code: 'unknown_endpoint', upstream_calls: 0 });

    for (const line of gateway.stdout().split('\n').slice(0, -1)) expect(line).toMatch(/^\{.*\}$/);
    expect(gateway.stdout()).toMatch(/\n$/);
    expect(gateway.stdout()).not.toContain(LEAK_MARK);
    expect(gateway.stderr()).toBe('');
  });

  it('a failure of the upstream’s has its own line with a code, still without anything of the client’s', async () => {
    const upstream = await startUpstream();
    upstream.on('POST /api/v2/apikey/', json(500, `<h1>${LEAK_MARK}</h1>`));
    const gateway = await startNode({ NODE_ENV: 'production', ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.url });
    const body = { label: LEAK_MARK };
    expect((await call(gateway.url, { path: '/api/v2/apikey/', token: secret(), body })).status).toBe(502);
    const failed = await gateway.until(() => gateway.records().find(({ status }) => status === 502));
    expect(failed).toMatchObject({ code: 'upstream_bad_response', operation: 'createApiKey', cache: 'method' });
    expect(gateway.stdout() + gateway.stderr()).not.toContain(LEAK_MARK);
    await upstream.close();
  });
});

describe('an upstream that gives a credential back', () => {
  it.each([
    ['as the code of an error', (key: string) => ({ detail: 'No.', code: key })],
    ['as the text of an error', (key: string) => ({ detail: `Not for ${key}.`, code: 'no' })],
    ['as the name of a field', (key: string) => ({ [key]: ['No.'] })],
  ])('%s finds it neither in the log nor in the answer', async (_, bodyWith) => {
    const upstream = await startUpstream();
    const token = secret();
    upstream.on('GET /api/v2/subscription/', json(400, bodyWith(token)));
    const gateway = await startNode({ ADMIN_PORT: '0', UPSTREAM_BASE_URL: upstream.url });
    const answer = await call(gateway.url, { path: '/api/v2/subscription/', token });
    await gateway.until(() => gateway.records().find(({ status }) => status === 400));
    expect(leaksIn(gateway.stdout() + gateway.stderr())).toEqual([]);
    expect(leaksIn(answer.text)).toEqual([]);
    await upstream.close();
  });
});

describe('listeners', () => {
  it('the admin one is off with ADMIN_PORT=0: two such processes are not in each other’s way', async () => {
    const [one, other] = [await startNode({ ADMIN_PORT: '0' }), await startNode({ ADMIN_PORT: '0' })];
    for (const { url, records } of [one, other]) {
      expect((await call(url, { path: '/readyz' })).status).toBe(200);
      expect(records().filter(({ msg }) => msg === 'listening')).toHaveLength(1);
    }
  });

  it('the admin one answers its probes, and nothing of the API', async () => {
    const { adminUrl } = await startNode({});
    for (const path of ['/livez', '/readyz']) expect((await call(adminUrl, { path })).status).toBe(200);
    const answer = await call(adminUrl, { path: '/api/v2/subscription/', token: 'sandbox-paid-key' });
    expect([answer.status, answer.json]).toMatchObject([404, { code: 'unknown_endpoint' }]);
  });

  it.each(['PORT', 'ADMIN_PORT'])('a %s in use ends the process with a line that says so', async (name) => {
    const taken = await occupy();
    const { port } = taken.address() as { port: number };
    const process = run({ env: { PORT: '0', ADMIN_PORT: '0', [name]: String(port) } });
    expect(await process.exited).not.toBe(0);
    expect(process.stdout() + process.stderr()).toMatch(
      new RegExp(`in use.*127\\.0\\.0\\.1:${port}|127\\.0\\.0\\.1:${port}.*in use`),
    );
    expect(process.stderr()).not.toMatch(/^\s+at /m); // a stack is no message
    taken.close();
  });

  it('the public one is not opened where the admin one cannot be', async () => {
    const taken = await occupy();
    const { port } = taken.address() as { port: number };
    const publicPort = await freePort();
    const process = run({
      env: { PORT: String(publicPort), ADMIN_PORT: String(port), NODE_OPTIONS: `--import ${PORTS_ON_STDERR}` },
    });
    expect(await process.exited).toBe(1);
    expect(process.stderr()).toContain(`opens ${port}\n`);
    expect(process.stderr()).not.toContain(`opens ${publicPort}\n`);
    taken.close();
  });
});

/** Names each port that a process tries to open. */
const PORTS_ON_STDERR = `data:text/javascript,${encodeURIComponent(`
  import { subscribe } from 'node:diagnostics_channel';
  subscribe('tracing:net.server.listen:asyncStart', ({ options }) => console.error('opens ' + options.port));
`)}`;

function occupy(): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => resolve(server));
  });
}
