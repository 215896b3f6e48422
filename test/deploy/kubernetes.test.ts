import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import type { IConfigMap } from 'kubernetes-models/v1/ConfigMap';
import type { ISecret } from 'kubernetes-models/v1/Secret';
import type { IService } from 'kubernetes-models/v1/Service';
import { describe, expect, test } from 'vitest';
import { configIn, documentsOf, filesIn, variables } from './files.ts';
import { kubernetesProblems } from './schemas.ts';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const manifests = filesIn('deploy/kubernetes').flatMap((file) => documentsOf(file) as Manifest[]);

function the(kind: string): unknown {
  const found = manifests.filter((manifest) => manifest.kind === kind);
  expect(found).toHaveLength(1);
  return found[0];
}

const deployment = (the('Deployment') as IDeployment).spec!;
const pod = deployment.template.spec!;
const [container] = pod.containers;
const labels = deployment.template.metadata!.labels!;
const settings = (the('ConfigMap') as IConfigMap).data as Record<string, string>;
const secrets = (the('Secret') as ISecret).stringData as Record<string, string>;
const config = configIn(settings);
const ports = { http: config.port, admin: config.adminPort };

describe('the Kubernetes manifests', () => {
  test.each(manifests)('$kind is what the schema of Kubernetes allows, and nothing besides', (manifest) => {
    expect(kubernetesProblems(manifest)).toEqual([]);
    expect(manifest.metadata).toMatchObject({ name: 'portico' });
    expect(manifest.metadata.namespace).toBeUndefined();
  });

  test('would fail for a field of the wrong type, a missing one and a misspelt one', () => {
    const broken = structuredClone(the('Deployment') as IDeployment);
    const [first] = broken.spec!.template.spec!.containers;
    Object.assign(first!, { ports: 'http', readynessProbe: {}, name: undefined });
    const problems = kubernetesProblems(broken).join('\n');
    expect(problems).toContain('/spec/template/spec/containers/0/ports type ');
    expect(problems).toContain('/spec/template/spec/containers/0 required {"missingProperty":"name"}');
    expect(problems).toContain('/spec/template/spec/containers/0/readynessProbe is a field');
  });

  test('set variables that the gateway has, to values that it takes', () => {
    expect([...Object.keys(settings), ...Object.keys(secrets)].filter((name) => !variables.has(name))).toEqual([]);
    expect(container?.envFrom).toEqual([{ configMapRef: { name: 'portico' } }, { secretRef: { name: 'portico' } }]);
    expect(config.adminHost).toBe('0.0.0.0');
    expect(config.trustedProxies).not.toEqual([]);
  });

  test('hold no secret, and no example of one that the gateway would take', () => {
    expect(settings).not.toHaveProperty('SECRETS');
    expect(settings).not.toHaveProperty('STORE_URL');
    expect(secrets['SECRETS']!.length).toBeLessThan(32);
    const applied = filesIn('deploy/kubernetes').filter((file) => /\.(ya?ml|json)$/.test(file));
    expect(applied.flatMap((file) => documentsOf(file) as Manifest[]).map(({ kind }) => kind)).not.toContain('Secret');
  });

  test('name the ports on which the gateway listens, and probe the right ones', () => {
    const named = container?.ports?.map(({ name, containerPort }) => [name, containerPort]);
    expect(Object.fromEntries(named ?? [])).toEqual(ports);
    expect(container?.startupProbe?.httpGet).toEqual({ path: '/livez', port: 'admin' });
    expect(container?.livenessProbe?.httpGet).toEqual({ path: '/livez', port: 'admin' });
    expect(container?.readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'http' });
    expect((the('Service') as IService).spec?.ports).toMatchObject([{ targetPort: 'http' }]);
    const open = (the('NetworkPolicy') as INetworkPolicy).spec?.ingress?.map(({ ports: at, from }) => ({ at, from }));
    expect(open).toMatchObject([{ at: [{ port: 'http' }] }, { at: [{ port: 'admin' }], from: expect.any(Array) }]);
  });

  test('tell Prometheus where the metrics are', () => {
    expect(deployment.template.metadata?.annotations).toEqual({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': String(ports.admin),
      'prometheus.io/path': '/metrics',
    });
  });

  test('select the pods of the deployment', () => {
    const selectors = [
      deployment.selector.matchLabels,
      (the('Service') as IService).spec?.selector,
      (the('PodDisruptionBudget') as IPodDisruptionBudget).spec?.selector?.matchLabels,
      (the('NetworkPolicy') as INetworkPolicy).spec?.podSelector?.matchLabels,
      ...(pod.topologySpreadConstraints ?? []).map(({ labelSelector }) => labelSelector?.matchLabels),
    ];
    expect(selectors).toHaveLength(6);
    for (const selector of selectors) expect(labels).toMatchObject(selector!);
    for (const selector of selectors) expect(Object.keys(selector!)).not.toHaveLength(0);
  });

  test('scale that deployment between two and more, and keep all but one of its pods', () => {
    const { scaleTargetRef, minReplicas, maxReplicas } = (the('HorizontalPodAutoscaler') as IHorizontalPodAutoscaler)
      .spec;
    const { apiVersion, kind, metadata } = the('Deployment') as Manifest;
    expect(scaleTargetRef).toEqual({ apiVersion, kind, name: metadata.name });
    expect(minReplicas).toBeGreaterThanOrEqual(2);
    expect(maxReplicas).toBeGreaterThan(minReplicas!);
    expect(container?.resources?.requests).toHaveProperty('cpu');
    expect(deployment).not.toHaveProperty('replicas');
    expect((the('PodDisruptionBudget') as IPodDisruptionBudget).spec?.maxUnavailable).toBe(1);
    expect(deployment.strategy?.rollingUpdate).toMatchObject({ maxUnavailable: 0 });
  });

  test('leave time to be taken out of rotation and then to drain', () => {
    const [program, seconds] = container?.lifecycle?.preStop?.exec?.command ?? [];
    expect(program).toBe('sleep');
    const needed = Number(seconds) + config.shutdownGraceMs / 1000;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(needed);
  });

  test('run it without rights', () => {
    expect(pod).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } });
    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });
});
