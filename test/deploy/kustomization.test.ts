import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import type { IHorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { afterAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { promql } from '../metrics/promql.ts';
import { filesIn, ROOT, textOf, yaml } from './files.ts';
import { base, COMPONENTS, FOLDER, type Manifest, manifestsOf, readBy, the } from './manifests.ts';
import { kubernetesProblems } from './schemas.ts';

/** Debian's kubectl has one that does not know components. */
const hasKustomize = /^Kustomize Version: v[5-9]/m.test(
  spawnSync('kubectl', ['version', '--client'], { encoding: 'utf8' }).stdout,
);

/** What is applied, from a copy of the folder. */
function build(folder: string, components: readonly string[]): Manifest[] {
  cpSync(join(ROOT, FOLDER), folder, { recursive: true });
  copyFileSync(join(folder, 'secret.env.example'), join(folder, 'secret.env'));
  const file = join(folder, 'kustomization.yaml');
  writeFileSync(
    file,
    readFileSync(file, 'utf8').replace('components: []', `components: ${JSON.stringify(components)}`),
  );
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
}

describe('the kustomization', () => {
  test('reads every file of the folder but what is for people, and no other', () => {
    const forPeople = ['components/scale-by-requests/prometheus-adapter.yaml', 'secret.env.example'];
    const read = ['.', ...COMPONENTS].flatMap(readBy).filter((file) => file !== 'secret.env');
    expect([...read, ...forPeople].toSorted()).toEqual(filesIn(FOLDER));
  });

  test('makes config and secret anew when they change, under the names that the pods ask for', () => {
    expect(base.configMapGenerator).toEqual([{ name: 'portico', envs: ['config.env'] }]);
    expect(base.secretGenerator).toEqual([{ name: 'portico', envs: ['secret.env'] }]);
    expect(JSON.stringify(base)).not.toContain('disableNameSuffixHash');
  });

  test('takes the image of this version', () => {
    const [{ image } = {}] = (the('Deployment') as IDeployment).spec!.template.spec!.containers;
    const { version } = JSON.parse(textOf('package.json')) as { readonly version: string };
    expect(base.images).toEqual([{ name: image, newName: expect.any(String), newTag: version }]);
  });

  test('needs nothing in the cluster unless a component is named', () => {
    expect(base).toMatchObject({ components: [] });
    const named = [...textOf(`${FOLDER}/kustomization.yaml`).matchAll(/^# {2}- (components\/.+)$/gm)];
    expect(named.map(([, component]) => component)).toEqual(COMPONENTS);
    expect(manifestsOf('.').filter(({ apiVersion }) => /\.com\//.test(apiVersion))).toEqual([]);
  });

  test('scales by the metric that the rule of the adapter makes', () => {
    const folder = `${FOLDER}/components/scale-by-requests`;
    const [{ value }] = yaml(`${folder}/autoscaler.yaml`) as [{ value: { pods: { metric: { name: string } } } }];
    expect(textOf('grafana/dashboard.json')).toContain(value.pods.metric.name);
    const [rule] = (yaml(`${folder}/prometheus-adapter.yaml`) as Adapter).rules.custom;
    expect(rule.seriesQuery).toBe(`${value.pods.metric.name}{namespace!="",pod!=""}`);
    const filled = rule.metricsQuery
      .replace('<<.Series>>', value.pods.metric.name)
      .replace('<<.LabelMatchers>>', 'namespace="here",pod=~"one|two"')
      .replace('<<.GroupBy>>', 'pod');
    expect(promql(filled)).toMatchObject({ grouping: ['pod'], selectors: [{ names: [value.pods.metric.name] }] });
  });

  describe.skipIf(!hasKustomize)('(skipped where kubectl has no kustomize of 5.0 or later)', () => {
    const folder = mkdtempSync(join(tmpdir(), 'portico-kubernetes-'));
    afterAll(() => rmSync(folder, { recursive: true }));

    test.each([[[]], [COMPONENTS]])('with %j is what the schema of Kubernetes allows', (components) => {
      const made = build(folder, components);
      expect(made.flatMap((manifest) => kubernetesProblems(manifest))).toEqual([]);
      const kinds = new Map(made.map((manifest) => [manifest.kind, manifest]));
      expect(kinds.has('PodMonitor')).toBe(components.length > 0);
      const { metrics } = (kinds.get('HorizontalPodAutoscaler') as unknown as IHorizontalPodAutoscaler).spec;
      expect(metrics?.map(({ type }) => type)).toEqual(components.length > 0 ? ['Resource', 'Pods'] : ['Resource']);
      const [{ envFrom } = {}] = (kinds.get('Deployment') as unknown as IDeployment).spec!.template.spec!.containers;
      expect(envFrom).toEqual([
        { configMapRef: { name: kinds.get('ConfigMap')?.metadata.name } },
        { secretRef: { name: kinds.get('Secret')?.metadata.name } },
      ]);
    });
  });
});

interface Adapter {
  readonly rules: { readonly custom: readonly [{ readonly seriesQuery: string; readonly metricsQuery: string }] };
}
