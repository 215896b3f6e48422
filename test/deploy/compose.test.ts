import { randomBytes } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { complaintsOf, configIn, isInstalled, ROOT, stopMs, textOf, variables, withDefaults, yaml } from './files.ts';
import { composeProblems } from './schemas.ts';

interface Service {
  readonly image: string;
  readonly build?: unknown;
  readonly command?: readonly string[];
  readonly depends_on?: unknown;
  readonly environment?: Readonly<Record<string, string>>;
  readonly healthcheck?: unknown;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
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
const { gateway, secret, valkey, sandbox } = services as Record<'gateway' | 'secret' | 'valkey' | 'sandbox', Service>;
const entries = Object.entries(services);
/** All but the one that runs once and ends. */
const lasting = entries.filter(([name]) => name !== 'secret');
const environment = Object.fromEntries(
  Object.entries(gateway.environment ?? {}).map(([name, value]) => [name, withDefaults(value)]),
);
const config = configIn({ ...environment, SECRETS: randomBytes(48).toString('base64') });
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
    expect(Number.parseInt(gateway.stop_grace_period!, 10) * 1000).toBeGreaterThan(stopMs(config));
  });

  describe('a secret', () => {
    const folder = mkdtempSync(join(tmpdir(), 'portico-secret-'));
    afterAll(() => rmSync(folder, { recursive: true }));
    const secretAfter = (name: string, given: string) => {
      const file = join(folder, name);
      const command = `umask 077; exec sh deploy/compose/secret.sh ${file}`;
      execFileSync('sh', ['-c', command], { cwd: ROOT, env: { ...process.env, SECRETS: given } });
      expect(statSync(file).mode & 0o777).toBe(0o644);
      return readFileSync(file, 'utf8');
    };

    test('is made once, which nobody knows, unless one is given', () => {
      const made = secretAfter('one', '');
      expect(made.trim().length).toBeGreaterThanOrEqual(32);
      expect(new Set(made).size).toBeGreaterThanOrEqual(16);
      expect(secretAfter('one', '')).toBe(made);
      expect(secretAfter('two', '')).not.toBe(made);
      expect(secretAfter('one', 'ours\\n,and the one before')).toBe('ours\\n,and the one before\n');
      expect(readdirSync(folder).toSorted()).toEqual(['one', 'two']);
    });

    test('is there before the gateways, which may only read it, and in no file of the repository', () => {
      expect(gateway.depends_on).toMatchObject({ secret: { condition: 'service_completed_successfully' } });
      expect(secret.command).toEqual(['sh', '/secret.sh', environment['SECRETS_FILE']]);
      expect(secret.environment).toEqual({ SECRETS: '${SECRETS:-}' });
      expect(gateway.volumes).toEqual([`secret:${dirname(environment['SECRETS_FILE']!)}:ro`]);
      expect(secret.volumes).toEqual([
        './deploy/compose/secret.sh:/secret.sh:ro',
        `secret:${dirname(environment['SECRETS_FILE']!)}`,
      ]);
      expect(secret).toMatchObject({ restart: 'no', network_mode: 'none', read_only: true, cap_drop: ['ALL'] });
    });
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
    const there = entries.filter(([, { networks }]) => networks?.includes('front')).map(([name]) => name);
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

  test.each(lasting)('%s has a health check, a pinned image, its files, and no rights', (_, service) => {
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

  test('has noticed that a gateway is about to stop before that takes no more connections', () => {
    const [, seconds, times] = /check inter (\d+)s fall (\d+) /.exec(line('server-template')!) ?? [];
    expect(config.shutdownDelayMs).toBeGreaterThan(Number(seconds) * 1000 * (Number(times) + 1));
  });

  test('says itself where a request comes from', () => {
    const requests = balancer.split('\n').filter((one) => one.trim().startsWith('http-request '));
    expect(requests.map((one) => one.trim())).toEqual([
      'http-request set-header X-Forwarded-For %[src]',
      'http-request set-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]',
      'http-request del-header Forwarded',
    ]);
    expect(line('option forwardfor')).toBeUndefined();
  });

  test('sends nothing twice, and waits for longer than the gateway does', () => {
    expect(line('retry-on')?.trim()).toBe('retry-on conn-failure');
    expect(Number(/timeout server (\d+)s/.exec(balancer)?.[1]) * 1000).toBeGreaterThan(
      30_000 + config.requestTimeoutMs,
    );
  });

  test.skipIf(!isInstalled('haproxy'))('is configured as HAProxy allows (skipped where that is not installed)', () => {
    expect(complaintsOf('haproxy', ['-c', '-f', 'deploy/compose/haproxy.cfg'])).toBe('');
  });
});
