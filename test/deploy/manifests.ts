import { join } from 'node:path';
import { expect } from 'vitest';
import { documentsOf, yaml } from './files.ts';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

interface Kustomization {
  readonly resources?: readonly string[];
  readonly patches?: readonly { readonly path: string }[];
  readonly images?: readonly { readonly name: string; readonly newTag: string }[];
  readonly configMapGenerator?: readonly Generator[];
  readonly secretGenerator?: readonly Generator[];
}

interface Generator {
  readonly name: string;
  readonly envs: readonly string[];
}

export const FOLDER = 'deploy/kubernetes';
/** Which want something in the cluster that not every one has. */
export const COMPONENTS = ['components/pod-monitor', 'components/scale-by-requests'];

const kustomizationOf = (folder: string) => yaml(join(FOLDER, folder, 'kustomization.yaml')) as Kustomization;
export const base = kustomizationOf('.');

/** What a folder's kustomization reads. */
export function readBy(folder: string): string[] {
  const { resources = [], patches = [], configMapGenerator = [], secretGenerator = [] } = kustomizationOf(folder);
  const generators = [...configMapGenerator, ...secretGenerator].flatMap(({ envs }) => envs);
  const read = [...resources, ...patches.map(({ path }) => path), ...generators, 'kustomization.yaml'];
  return read.map((name) => join(folder, name));
}

export const manifestsOf = (folder: string) =>
  (kustomizationOf(folder).resources ?? []).flatMap((name) => documentsOf(join(FOLDER, folder, name)) as Manifest[]);
export const manifests = ['.', ...COMPONENTS].flatMap(manifestsOf);

export function the(kind: string): unknown {
  const found = manifests.filter((manifest) => manifest.kind === kind);
  expect(found).toHaveLength(1);
  return found[0];
}
