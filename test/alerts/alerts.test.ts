import GithubSlugger from 'github-slugger';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { toString } from 'mdast-util-to-string';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { textOf, yaml } from '../deploy/files.ts';
import { scrapeEverything } from '../metrics/everything.ts';
import type { Scraped } from '../metrics/exposition.ts';
import { panels, rows, unknownIn } from '../metrics/panels.ts';

// Whether the rules fire when they should is in deploy/prometheus/alerts.test.yaml, for promtool.

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const { groups } = yaml('deploy/prometheus/alerts.yaml') as {
  readonly groups: readonly { readonly rules: readonly Alert[] }[];
};
const alerts = groups.flatMap(({ rules }) => rules);
const PAGE = 'docs/runbook.md';
const slugger = new GithubSlugger();
const headings = fromMarkdown(textOf(PAGE)).children.filter((node) => node.type === 'heading' && node.depth === 2);
const sections = new Map(headings.map((heading) => [`${PAGE}#${slugger.slug(toString(heading))}`, toString(heading)]));

let scraped: Scraped;

beforeAll(async () => {
  scraped = await scrapeEverything(afterAll);
});

describe.each(alerts)('$alert, as a $labels.severity', ({ alert, expr, labels, annotations }) => {
  test('asks for metrics and values of labels that exist', () => {
    expect(unknownIn(expr, scraped)).toEqual([]);
  });

  test('says what to do, has a section of the runbook, and a row of that name on the dashboard', () => {
    expect(['page', 'ticket']).toContain(labels['severity']);
    expect(annotations['description']).toMatch(/^[A-Z][^.!?]*\.$/);
    expect(textOf(PAGE)).toContain(`**Alert**: \`${alert}\``);
    expect(rows).toContain(sections.get(annotations['runbook_url'] ?? ''));
  });

  test('has a case for promtool', () => {
    expect(textOf('deploy/prometheus/alerts.test.yaml')).toContain(`alertname="${alert}"`);
  });
});

test('the runbook has no section of an alert that there is not', () => {
  expect(new Set(alerts.map(({ annotations }) => annotations['runbook_url']))).toEqual(new Set(sections.keys()));
});

test('the dashboard has panels of their own number and place, which ask for what exists', () => {
  expect(panels.length).toBe(25);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const at = panels.map(({ gridPos: { x, y } }) => `${x},${y}`);
  expect(new Set(at).size).toBe(at.length);
  for (const { title, targets } of panels)
    for (const { expr } of targets) expect([title, ...unknownIn(expr, scraped)]).toEqual([title]);
});
