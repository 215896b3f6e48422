import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { complaintsOf, configIn, isInstalled, ROOT, textOf, variables, withDefaults, yaml } from './files.ts';
import { composeProblems } from './schemas.ts';

interface Service {
  readonly image: string;
  readonly build?: unknown;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck?: unknown;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks: readonly string[];
  readonly deploy?: { readonly replicas: number };
  readonly stop_grace_period?: string;
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean; readonly ipam?: Ipam } | null>>;
}

interface Ipam {
  readonly config: readonly { readonly subnet: string }[];
}

const compose = yaml('compose.yaml') as Compose;
const { services } = compose;
const { gateway, valkey, sandbox } = services as Record<'gateway' | 'valkey' | 'sandbox', Service>;
const entries = Object.entries(services);
const environment = Object.fromEntries(
  Object.entries(gateway.environment ?? {}).map(([name, value]) => [name, withDefaults(value)]),
);
const config = configIn(environment);
const balancer = textOf('deploy/compose/haproxy.cfg');
const line = (start: string) => balancer.split('\n').find((text) => text.trim().startsWith(start));

describe('compose.yaml', () => {
  test('is what the compose specification allows', () => {
    expect(composeProblems(compose)).toEqual([]);
    const broken = { ...compose, services: { ...services, gateway: { ...gateway, readonly: true, ports: 'none' } } };
    expect(composeProblems(broken).join('\n')).toMatch(
      /gateway additionalProperties .*"readonly"[^]*gateway\/ports type /,
    );
  });

  test('needs nothing to be set', () => {
    expect(withDefaults(textOf('compose.yaml'))).not.toContain('${');
  });

  test('starts two gateways, with variables that they have and values that they take', () => {
    expect(gateway.deploy).toEqual({ replicas: 2 });
    expect(Object.keys(environment).filter((name) => !variables.has(name))).toEqual([]);
    expect(config.adminHost).toBe('0.0.0.0');
    expect(environment['SECRETS']!.length).toBeGreaterThanOrEqual(32);
    expect(Number.parseInt(gateway.stop_grace_period!, 10) * 1000).toBeGreaterThan(config.shutdownGraceMs);
  });

  test('gives them one store and one upstream, each where it says', () => {
    expect(environment['STORE_URL']).toBe('redis://valkey:6379');
    expect(environment['UPSTREAM_BASE_URL']).toBe(`http://sandbox:${sandbox.environment?.['SANDBOX_PORT']}`);
    expect(sandbox.environment?.['HOST']).toBe('0.0.0.0');
    expect(existsSync(join(ROOT, sandbox.command!.at(-1)!))).toBe(true);
    expect(textOf('Dockerfile')).toMatch(/^FROM \S+ AS build$/m);
    expect(compose.networks['back']).toEqual({ internal: true });
    for (const service of [valkey, sandbox]) expect(service.networks).toEqual(['back']);
  });

  test('has a store that forgets nothing to make room, and nothing at a restart', () => {
    const told = valkey.command!.join(' ');
    expect(told).toMatch(/--maxmemory \d+mb --maxmemory-policy noeviction /);
    expect(told).toContain('--appendonly yes --appendfsync everysec');
    expect(valkey.volumes).toContain('valkey:/data');
  });

  test('believes the network of the balancer about addresses, and no other', () => {
    const subnet = withDefaults(compose.networks['front']!.ipam!.config[0]!.subnet);
    expect(config.trustedProxies).toEqual([subnet]);
    const there = entries.filter(([, { networks }]) => networks.includes('front')).map(([name]) => name);
    expect(there).toEqual(['gateway', 'balancer']);
  });

  test('publishes only the balancer, Prometheus and Grafana, and only to this machine', () => {
    const published = Object.fromEntries(
      entries.filter(([, { ports }]) => ports).map(([name, { ports }]) => [name, ports]),
    );
    expect(published).toEqual({
      balancer: ['127.0.0.1:8080:8080'],
      prometheus: ['127.0.0.1:9090:9090'],
      grafana: ['127.0.0.1:3000:3000'],
    });
  });

  test.each(entries)('%s has a health check, a pinned image, its files, and no rights', (_, service) => {
    // The gateway's is that of its image.
    if (service !== gateway) expect(service.healthcheck).toBeDefined();
    expect(service.build !== undefined || /:v?\d+\.\d+\.\d+(-alpine)?$/.test(service.image)).toBe(true);
    expect(service).toMatchObject({ restart: 'unless-stopped', read_only: true, cap_drop: ['ALL'] });
    const own = (service.volumes ?? []).filter((volume) => volume.startsWith('./'));
    expect(
      own.filter((volume) => !existsSync(join(ROOT, volume.split(':', 1)[0]!)) || !volume.endsWith(':ro')),
    ).toEqual([]);
  });
});

describe('the balancer', () => {
  test('asks every gateway whether it is ready, where clients ask it', () => {
    expect(line('http-check send')).toContain('uri /readyz ');
    expect(line('server-template')).toContain(` gateway:${config.port} check `);
  });

  test('says itself where a request comes from', () => {
    expect(line('http-request')?.trim()).toBe('http-request set-header X-Forwarded-For %[src]');
    expect(line('option forwardfor')).toBeUndefined();
  });

  test('sends nothing twice, and waits for longer than the gateway does', () => {
    expect(line('retry-on')?.trim()).toBe('retry-on conn-failure');
    expect(Number(/timeout server (\d+)s/.exec(balancer)?.[1]) * 1000).toBeGreaterThan(config.requestTimeoutMs);
  });

  test.skipIf(!isInstalled('haproxy'))('is configured as HAProxy allows (skipped where that is not installed)', () => {
    expect(complaintsOf('haproxy', ['-c', '-f', 'deploy/compose/haproxy.cfg'])).toBe('');
  });
});
