import { describe, expect, test } from 'vitest';
import { hasPrometheus, SKIPPED } from '../support/prometheus.ts';
import { complaintsOf, configIn, textOf, yaml } from './files.ts';

interface Service {
  readonly volumes: readonly string[];
  readonly networks: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

interface Compose {
  readonly services: Readonly<Record<'gateway' | 'prometheus' | 'grafana', Service>>;
}

interface Prometheus {
  readonly global: { readonly scrape_interval: string };
  readonly rule_files: readonly string[];
  readonly scrape_configs: readonly [{ readonly job_name: string; readonly dns_sd_configs: readonly unknown[] }];
}

interface DataSources {
  readonly datasources: readonly [Readonly<Record<string, unknown>>];
}

interface Providers {
  readonly providers: readonly [{ readonly options: { readonly path: string } }];
}

const { services } = yaml('compose.yaml') as Compose;
const prometheus = yaml('deploy/compose/prometheus.yaml') as Prometheus;
const { datasources } = yaml('grafana/provisioning/datasources/prometheus.yaml') as DataSources;
const [source] = datasources;
const dashboard = JSON.parse(textOf('grafana/dashboard.json')) as {
  readonly templating: { readonly list: readonly Readonly<Record<string, unknown>>[] };
};
const variable = (name: string) => dashboard.templating.list.find((one) => one['name'] === name);

describe('Prometheus', () => {
  test('scrapes the admin listener of every gateway, on a network that they share', () => {
    const [{ job_name: job, dns_sd_configs: found, ...rest }, ...others] = prometheus.scrape_configs;
    expect([job, others]).toEqual(['portico', []]);
    const { adminPort } = configIn({ UPSTREAM_BASE_URL: 'http://upstream.example' });
    expect(found).toEqual([{ names: ['gateway'], type: 'A', port: adminPort, refresh_interval: '5s' }]);
    // Of which the default is /metrics.
    expect(rest).not.toHaveProperty('metrics_path');
    expect(services.gateway.networks).toEqual(expect.arrayContaining([...services.prometheus.networks]));
    expect(services.prometheus.volumes[0]).toBe('./deploy/compose/prometheus.yaml:/etc/prometheus/prometheus.yml:ro');
  });

  test('has the alert rules of the repository', () => {
    expect(prometheus.rule_files).toEqual(['../prometheus/alerts.yaml']);
    expect(services.prometheus.volumes[1]).toBe('./deploy/prometheus/alerts.yaml:/etc/prometheus/alerts.yaml:ro');
  });

  test.skipIf(!hasPrometheus)(`is configured as promtool allows${SKIPPED}`, () => {
    expect(complaintsOf('promtool', ['check', 'config', 'deploy/compose/prometheus.yaml'])).toBe('');
  });
});

describe('Grafana', () => {
  test('finds Prometheus, of the kind that the dashboard asks for, as what it starts with', () => {
    expect(source).toMatchObject({ type: 'prometheus', isDefault: true, url: 'http://prometheus:9090' });
    expect(source).toMatchObject({ jsonData: { timeInterval: prometheus.global.scrape_interval } });
    expect(variable('DS_PROMETHEUS')).toMatchObject({ type: 'datasource', query: source['type'] });
    expect(services.prometheus.networks).toEqual(services.grafana.networks);
  });

  test('shows the dashboard of the repository, of any job', () => {
    const { providers } = yaml('grafana/provisioning/dashboards/portico.yaml') as Providers;
    const [{ options }] = providers;
    const home = `${options.path}/portico.json`;
    expect(services.grafana.volumes).toContain(`./grafana/dashboard.json:${home}:ro`);
    expect(services.grafana.volumes).toContain('./grafana/provisioning:/etc/grafana/provisioning:ro');
    expect(services.grafana.environment['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH']).toBe(home);
    expect(variable('job')).toMatchObject({ definition: 'label_values(portico_circuit_open, job)', allValue: '.*' });
  });
});
