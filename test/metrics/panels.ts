import { textOf } from '../deploy/files.ts';
import type { Scraped } from './exposition.ts';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Readonly<Record<'x' | 'y', number>>;
  readonly targets: readonly { readonly expr: string }[];
}

const { panels: all } = JSON.parse(textOf('grafana/dashboard.json')) as { readonly panels: readonly Panel[] };

export const panels = all.filter(({ type }) => type !== 'row');
export const rows = all.filter(({ type }) => type === 'row').map(({ title }) => title);

/** Metrics that an expression names, and values of their labels, that nothing scraped has. */
export function unknownIn(expr: string, { samples, familyOf }: Scraped): string[] {
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
