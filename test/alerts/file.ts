import { join } from 'node:path';
import { ROOT, yaml } from '../deploy/files.ts';

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Group {
  readonly name: string;
  readonly interval?: string;
  readonly rules: readonly Alert[];
}

const FILE = 'deploy/prometheus/alerts.yaml';

export const PATH = join(ROOT, FILE);
export const { groups } = yaml(FILE) as { readonly groups: readonly Group[] };
export const alerts = groups.flatMap(({ rules }) => rules);
