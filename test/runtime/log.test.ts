import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { exampleBody } from '../support/examples.ts';
import { call } from '../support/http.ts';
import { freePort } from '../support/ports.ts';
import { openSocket } from '../support/raw-client.ts';
import { json, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { exposition } from '../metrics/exposition.ts';
import { emptyFolder, killAll, ROOT, run, type Running } from './node-gateway.ts';

const ENTRY = join(ROOT, 'src/entry/node.ts');
const READ = '/api/v2/subscription/';
const PURCHASE = '/api/v2/subscription/checkout/purchase/';

/** The disk of the log is full from that signal on. */
const FULL_ON_SIGNAL = `data:text/javascript,${encodeURIComponent(`
  import { closeSync, openSync, writeSync } from 'node:fs';
  process.on('SIGUSR2', () => {
    closeSync(1);
    writeSync(2, openSync('/dev/full', 'w') === 1 ? 'full' : 'not standard output');
  });
`)}`;

let upstream: ScriptedUpstream;

beforeEach(async () => {
  upstream = await startUpstream();
  upstream.on(`GET ${READ}`, json(200, { id: 1, plan: 2, payment_method: null }));
});

afterEach(async () => {
  await killAll();
  await upstream.close();
});

/** A pipe with a name, of which the test is the reader. */
class Pipe {
  readonly path = join(emptyFolder(), 'log');
  #reader: number;

  constructor() {
    execFileSync('mkfifo', [this.path]);
    this.#reader = openSync(this.path, constants.O_RDONLY | constants.O_NONBLOCK);
  }

  /** So that it takes nothing more until it is read. */
  fill(): void {
    const writer = openSync(this.path, constants.O_WRONLY | constants.O_NONBLOCK);
    try {
      for (const size of [4_096, 1]) untilItFails(() => writeSync(writer, Buffer.alloc(size, '\n')));
    } finally {
      closeSync(writer);
    }
  }

  leave(): void {
    closeSync(this.#reader);
  }

  comeBack(): void {
    this.#reader = openSync(this.path, constants.O_RDONLY | constants.O_NONBLOCK);
  }

  /** What is in it now. */
  read(): string {
    let text = '';
    untilItFails(() => {
      const some = this.readPage(65_536);
      text += some;
      return some.length;
    });
    return text;
  }

  /** At most so much of it. */
  readPage(size = 4_096): string {
    const bytes = Buffer.alloc(size);
    return bytes.toString('latin1', 0, readSync(this.#reader, bytes));
  }
}

/** Or does nothing more. */
function untilItFails(act: () => number): void {
  try {
    while (act() > 0);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error;
  }
}

interface Gateway extends Running {
  readonly port: number;
  readonly url: string;
  readonly adminUrl: string;
}

/** With its standard output there; its log cannot say that it listens. */
async function startInto(output: string, env: Readonly<Record<string, string>> = {}): Promise<Gateway> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const running = run({
    env: {
      NODE_ENV: 'production',
      UPSTREAM_BASE_URL: upstream.url,
      PORT: `${port}`,
      ADMIN_PORT: `${adminPort}`,
      ...env,
    },
    command: ['sh', '-c', `exec "$0" "$1" > ${output}`, process.execPath, ENTRY],
  });
  const [url, adminUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}`];
  const isAlive = () => call(url, { path: '/livez' }).then(({ status }) => status, String);
  await expect.poll(isAlive, { timeout: 40_000, interval: 20 }).toBe(200);
  return { ...running, port, url, adminUrl };
}

async function expectAlive({ url, adminUrl }: Gateway): Promise<void> {
  expect((await call(url, { path: READ, token: secret() })).status).toBe(200);
  expect((await call(url, { path: '/livez' })).status).toBe(200);
  expect((await call(adminUrl, { path: '/livez' })).status).toBe(200);
}

async function expectToStop(gateway: Gateway): Promise<void> {
  const sentAt = performance.now();
  gateway.signal('SIGTERM');
  expect(await gateway.exited).toBe(0);
  expect(performance.now() - sentAt).toBeLessThan(5_000);
  expect(['', 'full']).toContain(gateway.stderr());
}

/** Each of them has a line. */
async function answerMany(port: number, count: number): Promise<void> {
  const socket = await openSocket(port);
  const id = 'x'.repeat(100);
  const head = `GET /problems HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n\r\n`;
  for (let sent = 0; sent < count; sent += 25) {
    await socket.write(head.repeat(25));
    for (let answered = 0; answered < 25; answered++) await socket.readResponse();
  }
  socket.destroy();
}

const recordsIn = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { msg: string; count?: number; route?: string });

describe('a log whose reader stalls', () => {
  it('stops neither requests, nor probes, nor the end of the process', async () => {
    const pipe = new Pipe();
    pipe.fill();
    const gateway = await startInto(pipe.path);
    await expectAlive(gateway);
    await expectToStop(gateway);
  });

  it('loses lines beyond a bound, whole ones; they are counted, and the log says how many once it is read', async () => {
    const pipe = new Pipe();
    const gateway = await startInto(pipe.path);
    let text = pipe.read();
    pipe.fill();
    await answerMany(gateway.port, 15_000);
    const scraped = exposition((await call(gateway.adminUrl, { path: '/metrics' })).text);
    const dropped = scraped.value('portico_log_lines_dropped_total');
    expect(dropped).toBeGreaterThan(0);

    const said = () => {
      text += pipe.read();
      return /"count":(\d+),"msg":"log lines were dropped"/.exec(text)?.[1];
    };
    await expect.poll(said, { timeout: 40_000, interval: 1 }).toBeDefined();
    const written = recordsIn(text);
    const lines = written.filter(({ msg }) => msg === 'request').length;
    expect(lines + Number(said())).toBe(15_000);
    expect(written.filter(({ msg }) => msg === 'log lines were dropped')).toHaveLength(1);
    await expectAlive(gateway);
    await expectToStop(gateway);
    expect(recordsIn(pipe.read()).map(({ msg }) => msg)).toContain('stopping');
  });
});

describe('a log whose reader has gone', () => {
  it('is written on for the next reader, with the lines from between', async () => {
    const pipe = new Pipe();
    const gateway = await startInto(pipe.path);
    pipe.read();
    pipe.leave();
    await answerMany(gateway.port, 100);
    pipe.comeBack();
    let text = '';
    const lines = () => recordsIn((text += pipe.read())).filter(({ route }) => route === '/problems').length;
    await expect.poll(lines, { timeout: 40_000, interval: 20 }).toBeGreaterThanOrEqual(100);
    await expectToStop(gateway);
  });
});

describe('a log on a full disk', () => {
  it('ends neither the process nor what it prints besides', async () => {
    const gateway = await startInto('/dev/full', { NODE_ENV: 'development', UPSTREAM_BASE_URL: '' });
    expect((await call(gateway.url, { path: READ, token: 'sandbox-paid-key' })).status).toBe(200);
    await answerMany(gateway.port, 100);
    await expectToStop(gateway);
  });

  it('does not end the process: a purchase whose key comes once more is replayed, and charged once', async () => {
    const gateway = await startInto('/dev/null', { NODE_OPTIONS: `--import ${FULL_ON_SIGNAL}` });
    upstream.on(`POST ${PURCHASE}`, json(200, { payment_required: false, plan: 3 }));
    const purchase = {
      path: PURCHASE,
      token: secret(),
      body: exampleBody('purchasePlan'),
      headers: { 'Idempotency-Key': 'one-click' },
    };
    expect((await call(gateway.url, purchase)).status).toBe(200);
    gateway.signal('SIGUSR2');
    await gateway.until(() => gateway.stderr() || undefined);
    await answerMany(gateway.port, 100);
    const again = await call(gateway.url, purchase);
    expect(again).toMatchObject({ status: 200, headers: { 'idempotency-replayed': 'true' } });
    expect(upstream.calls.filter(({ method }) => method === 'POST')).toHaveLength(1);
    await expectToStop(gateway);
  });
});
