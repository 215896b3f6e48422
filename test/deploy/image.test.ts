import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../support/ports.ts';
import { killAll, run, type Running } from '../runtime/node-gateway.ts';
import { buildIn, pairsOf, type Stage, steps } from './dockerfile.ts';
import { textOf, yaml } from './files.ts';

type Versions = Readonly<Record<string, string>>;

interface Manifest {
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly dependencies: Versions;
  readonly devDependencies: Versions;
}

const json = (file: string): unknown => JSON.parse(textOf(file));
const manifest = json('package.json') as Manifest;
const ofImage = (json('deploy/image/package.json') as Manifest).dependencies;

/** Whom Linux gives nothing to. */
const NOBODY = 65_534;

const folder = mkdtempSync(join(tmpdir(), 'portico-image-'));
let image: Stage;
let build: Stage;

beforeAll(() => {
  const stages = buildIn(folder);
  [build, image] = [stages.get('build')!, stages.get('image')!];
  execFileSync('chmod', ['755', folder]);
  execFileSync('chmod', ['-R', 'a-w', image.root]);
});

afterAll(async () => {
  await killAll();
  execFileSync('chmod', ['-R', 'u+w', folder]);
  rmSync(folder, { recursive: true });
});

/** What one of its instructions tells to start. */
const commandOf = (said: string | undefined) => JSON.parse(/\[.*\]$/.exec(said ?? '')![0]) as string[];

/** In a stage, as a user who owns nothing there; without root's rights as one who has given them away. */
function runIn(stage: Stage, command: readonly string[], env: Versions): Running {
  const as = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
  const [file = '', ...args] = process.getuid?.() === 0 ? [...as, ...command] : command;
  const nowhere = { HOME: '/nonexistent', TMPDIR: stage.root, NODE_COMPILE_CACHE: '' };
  return run({ cwd: stage.cwd, command: [file, ...args], env: { ...nowhere, ...stage.env, ...env } });
}

const isListening = ({ records }: Running) => (records().some(({ msg }) => msg === 'listening') ? true : undefined);

async function health(env: Versions): Promise<[status: unknown, said: string]> {
  const check = runIn(image, commandOf(image.said['HEALTHCHECK']), env);
  return [await check.exited, check.stderr()];
}

async function listening(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return String((server.address() as AddressInfo).port);
}

describe('the image', () => {
  test.each(['0.0.0.0', 'localhost'])(
    'starts as a user who can write nothing, is healthy at %s, and leaves with 0',
    async (host) => {
      const [port, adminPort] = [String(await freePort()), String(await freePort())];
      const env = { HOST: host, PORT: port, ADMIN_PORT: adminPort, UPSTREAM_BASE_URL: 'http://127.0.0.1:9' };
      const gateway = runIn(image, commandOf(image.said['CMD']), env);
      await gateway.until(() => isListening(gateway));
      expect(await health(env)).toEqual([0, '']);
      gateway.signal('SIGTERM');
      expect(await gateway.exited).toBe(0);
      expect(await health(env)).toEqual([1, expect.stringContaining('Connection refused')]);
    },
  );

  test('is not healthy where something else than 200 is said, or nothing', async () => {
    const server = createServer((request, response) => {
      response.writeHead(request.url === '/livez' ? 503 : 200).end();
    });
    const env = { HOST: '127.0.0.1', PORT: await listening(server) };
    expect(await health(env)).toEqual([1, expect.stringContaining('HTTP/1.1 503')]);
    server.removeAllListeners('request').on('request', (request) => request.socket.destroy());
    expect(await health(env)).toEqual([1, expect.stringContaining('nothing')]);
    server.close();
  });

  test('starts no Node for its health check, which is as frequent and as patient as the probes of Kubernetes', () => {
    expect(commandOf(image.said['HEALTHCHECK'])[0]).toBe('perl');
    const [{ startupProbe: start, livenessProbe: live }] = (yaml('deploy/kubernetes/deployment.yaml') as Deployment)
      .spec.template.spec.containers;
    expect(pairsOf(image.said['HEALTHCHECK']!)).toEqual([
      ['--start-period', `${start.periodSeconds * start.failureThreshold}s`],
      ['--start-interval', `${start.periodSeconds}s`],
      ['--interval', `${live.periodSeconds}s`],
      ['--timeout', `${live.timeoutSeconds}s`],
      ['--retries', String(live.failureThreshold)],
    ]);
  });

  test('is of the Node that the tests run on, which a digest can be added to', () => {
    expect(steps[0]).toEqual(['ARG', `NODE_IMAGE=node:${manifest.devDependencies['node']}-bookworm-slim`]);
    const bases = steps.filter(([instruction]) => instruction === 'FROM').map(([, rest]) => rest.split(' ', 1)[0]);
    expect(bases).toEqual(['${NODE_IMAGE}', '${NODE_IMAGE}']);
    expect(image.said['USER']).toBe('node');
  });

  test('says what it is', () => {
    const { version, description, license } = manifest;
    const labels = pairsOf(image.said['LABEL']!).map(([name, value]) => [
      name.replace('org.opencontainers.image.', ''),
      value,
    ]);
    expect(Object.fromEntries(labels)).toEqual({
      title: 'Portico',
      description,
      licenses: license,
      version,
      source: '${SOURCE}',
      revision: '${REVISION}',
    });
  });

  test('has our license', () => {
    expect(readFileSync(join(image.cwd, 'LICENSE'), 'utf8')).toBe(textOf('LICENSE'));
  });
});

interface Deployment {
  readonly spec: { readonly template: { readonly spec: { readonly containers: readonly [Container] } } };
}

interface Container {
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
}

type Probe = Readonly<Record<'periodSeconds' | 'timeoutSeconds' | 'failureThreshold', number>>;

describe('the build', () => {
  test('installs what is bundled, and a bundler, in the versions that everybody else has', () => {
    const locked = (json('package-lock.json') as { packages: Readonly<Record<string, { version?: string }>> }).packages;
    const versions = Object.keys(ofImage).map((name) => [name, locked[`node_modules/${name}`]?.version]);
    expect(Object.fromEntries(versions)).toEqual(ofImage);
    expect(Object.keys(locked).filter((path) => path.startsWith('deploy/image/'))).toEqual([]);
    expect(existsSync(join(build.cwd, 'node_modules/typescript'))).toBe(false);
  });

  test('holds the sandbox that compose starts from it, with its health check', async () => {
    const { sandbox } = (yaml('compose.yaml') as { services: Readonly<Record<'sandbox', Service>> }).services;
    const port = String(await freePort());
    const server = runIn(build, sandbox.command, { ...sandbox.environment, SANDBOX_PORT: port });
    await server.until(() => (server.stdout().includes('/_sandbox/calls') ? true : undefined));
    const [, file = '', ...args] = sandbox.healthcheck.test.map((word) => word.replace('8789', port));
    expect(await runIn(build, [file, ...args], {}).exited).toBe(0);
  });
});

interface Service {
  readonly command: readonly string[];
  readonly environment: Versions;
  readonly healthcheck: { readonly test: readonly string[] };
}
