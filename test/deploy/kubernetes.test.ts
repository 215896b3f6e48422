import { parseEnv } from 'node:util';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { configIn, documentsOf, ROOT, stopMs, textOf, variables } from './files.ts';
import { checkManifest } from './schemas.ts';

const FOLDER = 'deploy/kubernetes';

interface Manifest {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly spec: unknown;
}

interface Deployment {
  readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly template: {
    readonly metadata: { readonly labels: object; readonly annotations: object };
    readonly spec: {
      readonly terminationGracePeriodSeconds: number;
      readonly containers: readonly [Readonly<Record<string, unknown>>];
    };
  };
}

const files = globSync('**/*.yaml', { cwd: join(ROOT, FOLDER) });
const isManifest = (document: unknown): document is Manifest =>
  typeof document === 'object' && document !== null && 'spec' in document && 'metadata' in document;
const manifests = files.flatMap((file) => documentsOf(join(FOLDER, file)).filter(isManifest));
const specOf = (kind: string) => manifests.find((one) => one.kind === kind)?.spec;
const deployment = specOf('Deployment') as Deployment;
const [container] = deployment.template.spec.containers;
const settings = parseEnv(textOf(`${FOLDER}/config.env`)) as Record<string, string>;
const secrets = parseEnv(textOf(`${FOLDER}/secret.env.example`)) as Record<string, string>;
const config = configIn(settings);

describe('the Kubernetes manifests', () => {
  test.each(manifests)('$kind is what the schema of Kubernetes allows', (manifest) => {
    expect(() => checkManifest(manifest.kind, manifest)).not.toThrow();
  });

  test('set variables that the gateway has, to values that it takes, and no secret', () => {
    expect([...Object.keys(settings), ...Object.keys(secrets)].filter((name) => !variables.has(name))).toEqual([]);
    expect(config.adminHost).toBe('0.0.0.0');
    expect(config.trustedProxies).not.toEqual([]);
    expect(Object.keys(secrets).toSorted()).toEqual(['SECRETS', 'STORE_URL']);
    expect(secrets['SECRETS']!.length).toBeLessThan(32);
    expect(textOf('.gitignore').split('\n')).toContain(`${FOLDER}/secret.env`);
  });

  test('name the ports on which the gateway listens, probe the right ones, and let it out to where it has to', () => {
    expect(container['ports']).toMatchObject([
      { name: 'http', containerPort: config.port },
      { name: 'admin', containerPort: config.adminPort },
    ]);
    expect(container['livenessProbe']).toMatchObject({ httpGet: { path: '/livez', port: 'admin' } });
    expect(container['readinessProbe']).toMatchObject({ httpGet: { path: '/readyz', port: 'http' } });
    expect(specOf('Service')).toMatchObject({ ports: [{ targetPort: 'http' }] });
    expect(specOf('PodMonitor')).toMatchObject({ podMetricsEndpoints: [{ port: 'admin', path: '/metrics' }] });
    expect(deployment.template.metadata.annotations).toMatchObject({
      'prometheus.io/port': String(config.adminPort),
      'prometheus.io/path': '/metrics',
    });
    const store = Number(new URL(secrets['STORE_URL']!).port);
    const open = [53, config.upstreamBaseUrl?.port || 443, store].map(
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
    expect(deployment.template.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(stopMs(config));
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
