import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { scrapeEverything } from './everything.ts';
import type { Scraped } from './exposition.ts';
import { promql } from './promql.ts';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: unknown;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string; readonly datasource: unknown }[];
}

interface Dashboard {
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
  readonly annotations: { readonly list: readonly { readonly expr?: string }[] };
}

const text = readFileSync(join(import.meta.dirname, '../../grafana/dashboard.json'), 'utf8');
const dashboard = JSON.parse(text) as Dashboard;
const panels = dashboard.panels.filter(({ type }) => type !== 'row');
const targets = panels.flatMap(({ title, targets: own = [] }) => own.map((target) => ({ title, ...target })));
const variables = dashboard.templating.list.map(({ name }) => name);

/** What Prometheus itself adds to each series. */
const OF_THE_SCRAPE = ['job', 'instance'];

let scraped: Scraped;

beforeAll(async () => {
  scraped = await scrapeEverything(afterAll);
});

const samplesOf = (name: string) => scraped.samples.filter((sample) => sample.name === name);
const labelsOf = (name: string) => new Set(samplesOf(name).flatMap(({ labels }) => Object.keys(labels)));

describe('the dashboard', () => {
  test('has panels of their own number and place, all of one data source that can be chosen', () => {
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(39);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(dashboard.panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
    const source = { type: 'prometheus', uid: '${DS_PROMETHEUS}' };
    for (const panel of panels) {
      expect(panel).toMatchObject({ title: expect.stringMatching(/./), datasource: source });
      expect(panel.targets).not.toHaveLength(0);
    }
    for (const target of targets) expect(target.datasource).toEqual(source);
  });

  test('uses no variable that it does not define', () => {
    const used = [...text.matchAll(/\$\{?([A-Za-z_]+)/g)].map(([, name = '']) => name);
    const builtIn = ['__rate_interval', '__interval', '__all'];
    expect(used.filter((name) => !variables.includes(name) && !builtIn.includes(name))).toEqual([]);
    expect(variables.filter((name) => !used.includes(name))).toEqual([]);
  });

  test.each(targets)('asks in "$title" for what exists: $expr', ({ expr, legendFormat }) => {
    const { selectors, grouping, isAggregate } = promql(expr);
    const metrics = selectors.flatMap(({ names }) => names);
    expect(metrics).not.toHaveLength(0);
    expect(metrics.filter((name) => scraped.familyOf(name) === undefined)).toEqual([]);
    for (const { names, matchers, isRange } of selectors) {
      for (const name of names) {
        expect([name, isRange]).toEqual([name, scraped.familyOf(name)?.type !== 'gauge']);
        const missing = matchers.filter(({ label, value }) => !matches(name, label, value));
        expect(missing).toEqual([]);
      }
      expect(matchers.map(({ label }) => label)).toEqual(expect.arrayContaining(OF_THE_SCRAPE));
    }
    const known = [...OF_THE_SCRAPE, ...metrics.flatMap((name) => [...labelsOf(name)])];
    expect(grouping.filter((label) => !known.includes(label))).toEqual([]);
    if (expr.includes('histogram_quantile')) expect(grouping).toContain('le');
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    expect(shown.filter((label) => !(isAggregate ? grouping : known).includes(label))).toEqual([]);
  });

  test('asks for what exists in its variables and annotations', () => {
    const definitions = dashboard.templating.list.flatMap(({ definition = '' }) => {
      const [, selector, label] = /^label_values\((.*), (\w+)\)$/.exec(definition) ?? [];
      return selector && label ? [{ selector, label }] : [];
    });
    expect(definitions).toHaveLength(variables.length - 1); // all but the data source
    for (const { selector, label } of definitions) {
      const [found] = promql(selector).selectors;
      expect(found?.names).not.toHaveLength(0);
      for (const name of found?.names ?? []) expect([...OF_THE_SCRAPE, ...labelsOf(name)]).toContain(label);
    }
    for (const { expr } of dashboard.annotations.list.filter((one) => one.expr))
      for (const { names } of promql(expr ?? '').selectors)
        expect(names.filter((name) => !scraped.familyOf(name))).toEqual([]);
  });

  test('plots every metric of ours', () => {
    const plotted = new Set(targets.flatMap(({ expr }) => promql(expr).selectors.flatMap(({ names }) => names)));
    const families = new Set([...plotted].map((name) => scraped.familyOf(name)));
    const ours = [...scraped.families].filter(([name]) => name.startsWith('portico_'));
    expect(ours.filter(([, family]) => !families.has(family)).map(([name]) => name)).toEqual([]);
  });
});

/** A variable matches anything; a text has to be one that the label can have. */
function matches(name: string, label: string, value: string): boolean {
  if (OF_THE_SCRAPE.includes(label)) return value === `$${label}`;
  if (value.startsWith('$')) return labelsOf(name).has(label);
  const values = new Set(samplesOf(name).map(({ labels }) => labels[label]));
  return value.split('|').every((one) => values.has(one));
}
