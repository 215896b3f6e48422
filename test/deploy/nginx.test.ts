import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { barrier } from '../support/barrier.ts';
import { freePort, listenLocally } from '../support/ports.ts';
import { killAll, run } from '../runtime/node-gateway.ts';
import { complaintsOf, configIn, isInstalled, ROOT, textOf } from './files.ts';

const FILE = 'deploy/nginx/nginx.conf';
const conf = textOf(FILE);
const config = configIn({ UPSTREAM_BASE_URL: 'http://upstream.example' });
const seconds = (directive: string) => Number(new RegExp(`${directive} (\\d+)s;`).exec(conf)?.[1]);

const folder = mkdtempSync(join(tmpdir(), 'portico-nginx-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** What a gateway of the test does with a request that it has read to its end. */
type Behaviour = (request: IncomingMessage, response: ServerResponse) => void;

const answers: Behaviour = (_, response) => void response.end('here');
const breaksOff: Behaviour = ({ socket }) => void socket.destroy();

let gateways: readonly [one: Server, two: Server];
let behaviour: Behaviour;
let seen: IncomingMessage[];
let port: number;

/** The file, between the ports of a test. */
const between = (ports: readonly number[]) => `
${process.getuid?.() === 0 ? 'user root;' : ''} # its workers could not write into the folder otherwise
daemon off;
pid nginx.pid;
error_log stderr notice;
${conf
  .replace('worker_processes auto;', 'worker_processes 1;')
  .replace('listen 8080;', `listen 127.0.0.1:${port};`)
  .replace('10.0.0.11:8787', `127.0.0.1:${ports[0]}`)
  .replace('10.0.0.12:8787', `127.0.0.1:${ports[1]}`)
  .replace('http {', `http { access_log off; ${TEMPORARY.map((name) => `${name}_temp_path ${name};`).join(' ')}`)}`;

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

async function startNginx(): Promise<void> {
  port = await freePort();
  const ports = await Promise.all(gateways.map((gateway) => listenLocally(gateway)));
  writeFileSync(join(folder, 'nginx.conf'), between(ports));
  const nginx = run({ command: ['nginx', '-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')] });
  await nginx.until(() => (nginx.stderr().includes('start worker process ') ? true : undefined));
}

const gateway = () =>
  createServer((asked, response) => {
    void text(asked).then(() => {
      seen.push(asked);
      behaviour(asked, response);
    });
  });

/** Resolves once the answer begins. */
const send = (method: string, headers: Readonly<Record<string, string>> = {}): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const options = { port, method, path: '/api/v2//a%2Fb/?q=%20', headers, agent: false };
    request(options, resolve)
      .on('error', reject)
      .end(method === 'GET' ? undefined : '{}');
  });

describe('nginx', () => {
  test('waits for longer than the gateway does, and keeps connections for a shorter time', () => {
    expect(seconds('proxy_read_timeout') * 1000).toBeGreaterThan(30_000 + config.requestTimeoutMs);
    expect(seconds('keepalive_timeout') * 1000).toBeLessThan(config.keepAliveMs);
  });

  describe.skipIf(!isInstalled('nginx'))('(skipped where nginx is not installed)', () => {
    beforeEach(async () => {
      seen = [];
      behaviour = answers;
      gateways = [gateway(), gateway()];
      await startNginx();
    });

    afterEach(async () => {
      await killAll();
      for (const one of gateways) {
        one.close();
        one.closeAllConnections();
      }
    });

    test('is configured as nginx allows', () => {
      const args = ['-t', '-q', '-e', 'stderr', '-g', `pid ${folder}/other.pid;`, '-p', folder, '-c', join(ROOT, FILE)];
      expect(complaintsOf('nginx', args)).toBe('');
    });

    test.each(['GET', 'POST', 'DELETE'])(
      'passes %s on as it is, and says itself where it comes from',
      async (method) => {
        const headers = {
          Host: 'portico.example:8443',
          'X-Forwarded-For': '6.6.6.6',
          'X-Forwarded-Proto': 'gopher',
          Forwarded: 'for=6.6.6.6',
        };
        expect(await text(await send(method, headers))).toBe('here');
        const [asked] = seen;
        expect([asked?.method, asked?.url]).toEqual([method, '/api/v2//a%2Fb/?q=%20']);
        expect(asked?.headers).toMatchObject({
          host: 'portico.example:8443',
          'x-forwarded-for': '127.0.0.1',
          'x-forwarded-proto': 'http',
        });
        expect(asked?.headers).not.toHaveProperty('forwarded');
      },
    );

    test.each(['POST', 'PATCH', 'PUT', 'DELETE'])('sends %s once, even if the gateway breaks off', async (method) => {
      await text(await send('GET'));
      behaviour = breaksOff;
      // The first on the connection that has been kept, the second on a new one.
      for (const status of [(await send(method)).statusCode, (await send(method)).statusCode]) expect(status).toBe(502);
      expect(seen.map((asked) => asked.method)).toEqual(['GET', method, method]);
    });

    test('reads from another gateway if one breaks off', async () => {
      behaviour = (asked, response) => (seen.length === 1 ? breaksOff : answers)(asked, response);
      expect((await send('GET')).statusCode).toBe(200);
      expect(seen).toHaveLength(2);
    });

    test.each(['GET', 'POST', 'PATCH'])('sends %s to the gateway that takes connections', async (method) => {
      gateways[0].close();
      for (let sent = 0; sent < 4; sent++) expect((await send(method)).statusCode).toBe(200);
      expect(seen).toHaveLength(4);
    });

    test('keeps connections to the gateways, and hands lines of a stream out as they come', async () => {
      const isRead = barrier();
      behaviour = (_, response) => {
        response.setHeader('X-Accel-Buffering', 'no').write('one\n');
        void isRead.arrive().then(() => response.end('two\n'));
      };
      const answer = await send('GET');
      const lines: string[] = [];
      for await (const chunk of answer) {
        lines.push(String(chunk));
        isRead.release();
      }
      expect(lines).toEqual(['one\n', 'two\n']);
      for (let sent = 0; sent < 4; sent++) await text(await send('GET'));
      expect(new Set(seen.map(({ socket }) => socket)).size).toBeLessThanOrEqual(gateways.length);
    });
  });
});
