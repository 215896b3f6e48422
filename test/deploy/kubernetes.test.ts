import { parseEnv } from 'node:util';
import type { IPodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import type { INetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import type { IPodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import type { IService } from 'kubernetes-models/v1/Service';
import { describe, expect, test } from 'vitest';
import { configIn, filesIn, stopMs, textOf, variables } from './files.ts';
import { FOLDER, type Manifest, manifests, the } from './manifests.ts';
import { kubernetesProblems } from './schemas.ts';

const deployment = (the('Deployment') as IDeployment).spec!;
const pod = deployment.template.spec!;
const [container] = pod.containers;
const labels = deployment.template.metadata!.labels!;
const settings = parseEnv(textOf(`${FOLDER}/config.env`)) as Record<string, string>;
const secrets = parseEnv(textOf(`${FOLDER}/secret.env.example`)) as Record<string, string>;
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
    const monitor = structuredClone(the('PodMonitor') as IPodMonitor);
    Object.assign(monitor.spec, { podMetricsEndpoints: [{ port: 1, pathh: '/metrics' }] });
    const problems = [...kubernetesProblems(broken), ...kubernetesProblems(monitor)].join('\n');
    expect(problems).toContain('/spec/podMetricsEndpoints/0/port type ');
    expect(problems).toContain('/spec/podMetricsEndpoints/0/pathh is a field');
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
    expect(Object.keys(settings)).not.toEqual(expect.arrayContaining(Object.keys(secrets)));
    expect(Object.keys(secrets).toSorted()).toEqual(['SECRETS', 'STORE_URL']);
    expect(secrets['SECRETS']!.length).toBeLessThan(32);
    expect(filesIn(FOLDER)).not.toContain('secret.env');
    expect(textOf('.gitignore').split('\n')).toContain(`${FOLDER}/secret.env`);
  });

  test('let the gateway out to where its variables say, by port', () => {
    const [{ ports: open = [] } = {}] = (the('NetworkPolicy') as INetworkPolicy).spec?.egress ?? [];
    const upstream = Number(config.upstreamBaseUrl?.port || 443);
    const store = Number(new URL(secrets['STORE_URL']!).port);
    expect(open.map(({ port }) => port)).toEqual(expect.arrayContaining([53, upstream, store]));
    expect(open.filter(({ port }) => port === 53).map(({ protocol }) => protocol)).toEqual(['UDP', 'TCP']);
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

  test('tell Prometheus where the metrics are, with its operator and without', () => {
    const { selector, podMetricsEndpoints } = (the('PodMonitor') as IPodMonitor).spec;
    expect(selector.matchLabels).toEqual(deployment.selector.matchLabels);
    expect(podMetricsEndpoints).toEqual([{ port: 'admin', path: '/metrics', interval: '15s' }]);
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
    expect(config.shutdownDelayMs).toBeGreaterThan(0);
    expect(container).not.toHaveProperty('lifecycle');
    expect(pod.terminationGracePeriodSeconds! * 1000).toBeGreaterThan(stopMs(config));
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
