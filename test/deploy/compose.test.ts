import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { configIn, ROOT, stopMs, textOf, variables, withDefaults, yaml } from './files.ts';
import { composeProblems } from './schemas.ts';

interface Service {
  readonly image: string;
  readonly build?: unknown;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly stop_grace_period?: string;
}

const compose = yaml('compose.yaml') as {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: unknown;
};
const { gateway, valkey, sandbox, prometheus, grafana } = compose.services as Readonly<
  Record<'gateway' | 'valkey' | 'sandbox' | 'prometheus' | 'grafana', Service>
>;
const entries = Object.entries(compose.services);
const environment = Object.fromEntries(
  Object.entries(gateway.environment ?? {}).map(([name, value]) => [name, withDefaults(value)]),
);
const config = configIn({ ...environment, SECRETS: randomBytes(48).toString('base64') });

describe('compose.yaml', () => {
  test('is what the compose specification allows', () => {
    expect(composeProblems(compose)).toEqual([]);
    const broken = { ...compose, services: { gateway: { ...gateway, ports: 'none' } } };
    expect(composeProblems(broken)).not.toEqual([]);
  });

  test('needs nothing to be set, and sets variables that the gateway has', () => {
    expect(withDefaults(textOf('compose.yaml'))).not.toContain('${');
    expect(Object.keys(environment).filter((name) => !variables.has(name))).toEqual([]);
    expect(Number.parseInt(gateway.stop_grace_period ?? '', 10) * 1000).toBeGreaterThan(stopMs(config));
  });

  test('gives the gateways one store, which forgets nothing to make room, and one upstream, out of reach of others', () => {
    expect(environment['STORE_URL']).toBe('redis://valkey:6379');
    expect(environment['UPSTREAM_BASE_URL']).toBe(`http://sandbox:${sandbox.environment?.['SANDBOX_PORT']}`);
    expect(valkey.command?.join(' ')).toContain('--maxmemory-policy noeviction');
    expect(compose.networks).toMatchObject({ back: { internal: true } });
    for (const service of [valkey, sandbox]) expect(service.networks).toEqual(['back']);
  });

  test('publishes only the balancer, Prometheus and Grafana, and only to this machine', () => {
    const published = entries.flatMap(([name, { ports = [] }]) => ports.map((port) => `${name} ${port}`));
    const at = ['balancer 127.0.0.1:8080:8080', 'prometheus 127.0.0.1:9090:9090', 'grafana 127.0.0.1:3000:3000'];
    expect(published.toSorted()).toEqual(at.toSorted());
  });

  test.each(entries)('%s has a pinned image, files that are there, and no rights', (_, service) => {
    expect(service.build !== undefined || /:v?\d+\.\d+\.\d+(-alpine)?$/.test(service.image)).toBe(true);
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
    for (const volume of (service.volumes ?? []).filter((one) => one.startsWith('./')))
      expect([volume, existsSync(join(ROOT, volume.split(':', 1)[0] ?? ''))]).toEqual([volume, true]);
  });

  test('has Prometheus scrape the admin listener with our alerts, and Grafana show our dashboard', () => {
    const scraping = yaml('deploy/compose/prometheus.yaml');
    const found = { names: ['gateway'], type: 'A', port: config.adminPort };
    expect(scraping).toMatchObject({ scrape_configs: [{ job_name: 'portico', dns_sd_configs: [found] }] });
    expect(prometheus.volumes).toContain('./deploy/prometheus/alerts.yaml:/etc/prometheus/alerts.yaml:ro');
    const home = grafana.environment?.['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH'];
    expect(grafana.volumes).toContain(`./grafana/dashboard.json:${home}:ro`);
  });
});

describe('balancers', () => {
  const haproxy = textOf('deploy/compose/haproxy.cfg');
  const nginx = textOf('deploy/nginx/nginx.conf');

  test('ask whether a gateway is ready, say themselves where a request comes from, and send nothing twice', () => {
    expect(haproxy).toContain('uri /readyz ');
    expect(haproxy).toContain('http-request set-header X-Forwarded-For %[src]');
    expect(haproxy).toContain('http-request del-header Forwarded');
    expect(haproxy).toMatch(/retry-on conn-failure$/m);
    expect(nginx).toMatch(/proxy_set_header X-Forwarded-For \$remote_addr;/);
    expect(nginx).not.toContain('non_idempotent');
  });

  test('wait for longer than the gateway does', () => {
    const seconds = [/timeout server (\d+)s/.exec(haproxy)?.[1], /proxy_read_timeout (\d+)s/.exec(nginx)?.[1]];
    for (const one of seconds) expect(Number(one) * 1000).toBeGreaterThan(30_000 + config.requestTimeoutMs);
  });
});
