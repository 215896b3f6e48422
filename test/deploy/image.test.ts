import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { BAD_CONFIG } from '../../src/entry/node/variables.ts';
import { configIn, ROOT, stopMs, textOf, variables } from './files.ts';

interface Package {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const json = (file: string): unknown => JSON.parse(textOf(file));
const dockerfile = textOf('Dockerfile');

describe('the image', () => {
  test('is of the Node that the tests run on, of this version, and is run by nobody in particular', () => {
    const { version, devDependencies } = json('package.json') as Package;
    expect(dockerfile).toContain(`ARG NODE_IMAGE=node:${devDependencies['node']}-bookworm-slim`);
    expect(dockerfile).toContain(`org.opencontainers.image.version="${version}"`);
    expect(dockerfile).toMatch(/^USER node$/m);
    expect(dockerfile).toMatch(new RegExp(`^EXPOSE ${configIn({ UPSTREAM_BASE_URL: 'http://a.example' }).port}$`, 'm'));
  });

  test('is made of files that are there', () => {
    const lines = dockerfile.split('\n').filter((line) => line.startsWith('COPY ') && !line.includes('--from'));
    const paths = lines.flatMap((line) => line.split(' ').slice(1, -1));
    expect(paths.filter((path) => !path.includes('*') && !existsSync(join(ROOT, path)))).toEqual([]);
    expect(existsSync(join(ROOT, 'deploy/image/health.pl'))).toBe(true);
  });

  test('installs what is bundled, in the versions that everybody else has', () => {
    const { dependencies } = json('deploy/image/package.json') as Package;
    const { packages } = json('package-lock.json') as { packages: Readonly<Record<string, { version?: string }>> };
    const versions = Object.keys(dependencies).map((name) => [name, packages[`node_modules/${name}`]?.version]);
    expect(Object.fromEntries(versions)).toEqual(dependencies);
  });
});

describe('the systemd unit', () => {
  const unit = textOf('deploy/systemd/portico.service');
  const all = (name: string) =>
    Array.from(unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm')), ([, value = '']) => value);
  const pairs = all('Environment').flatMap((line) => line.split(' ').map((pair) => pair.split('=')));
  const { SECRETS_FILE, STORE_URL_FILE, ...settings } = Object.fromEntries(pairs) as Record<string, string>;

  test('sets variables that the gateway has, and hands over what is secret in files', () => {
    expect(pairs.filter(([name = '']) => !variables.has(name))).toEqual([]);
    const names = all('LoadCredential').map((credential) => `%d/${credential.split(':', 1)[0]}`);
    expect([SECRETS_FILE, STORE_URL_FILE]).toEqual(names);
  });

  test('leaves time to drain, and starts again unless the configuration is bad', () => {
    const config = configIn({ UPSTREAM_BASE_URL: 'http://upstream.example', ...settings });
    expect(Number(all('TimeoutStopSec')[0]) * 1000).toBeGreaterThan(stopMs(config));
    expect(all('RestartPreventExitStatus')).toEqual([String(BAD_CONFIG)]);
  });
});
