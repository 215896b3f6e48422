import GithubSlugger from 'github-slugger';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { toString } from 'mdast-util-to-string';
import { describe, expect, test } from 'vitest';
import { textOf } from '../deploy/files.ts';
import { alerts, groups } from './file.ts';

const PAGE = 'docs/runbook.md';
const PARTS = ['Alert', 'Clients see', 'Look', 'Do', 'Over'];

const nodes = fromMarkdown(textOf(PAGE)).children;
const headings = nodes.filter((node) => node.type === 'heading' && node.depth === 2);
const slugger = new GithubSlugger();

/** Heading of each section by its anchor, with what is written below it. */
const sections = new Map(
  headings.map((heading, at) => {
    const next = headings[at + 1];
    const inner = nodes.slice(nodes.indexOf(heading) + 1, next ? nodes.indexOf(next) : nodes.length);
    return [slugger.slug(toString(heading)), { title: toString(heading), inner }] as const;
  }),
);

const anchorOf = (url = '') => url.replace(`${PAGE}#`, '');

const dashboard = JSON.parse(textOf('grafana/dashboard.json')) as {
  readonly panels: readonly { readonly type: string; readonly title: string }[];
};

describe.each(alerts)('$alert, as a $labels.severity', ({ alert, labels, annotations }) => {
  test('says what is wrong, and in one sentence what to do', () => {
    expect(['page', 'ticket']).toContain(labels['severity']);
    expect(annotations['summary']).toMatch(/^\{\{ \$labels\.(job|instance) }}: \S/);
    expect(annotations['description']).toMatch(/^[A-Z][^.!?]*\.$/);
  });

  test('has a section of the runbook, in which it is named and all is said', () => {
    const section = sections.get(anchorOf(annotations['runbook_url']));
    const [first] = section?.inner ?? [];
    expect(first && toString(first)).toMatch(new RegExp(`^Alert: ${alert}\\W`));
    const begins = (section?.inner ?? []).map((node) => toString(node));
    expect(PARTS.filter((part) => !begins.some((text) => text.startsWith(part)))).toEqual([]);
  });

  test('has a row on the dashboard, of the same name', () => {
    const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect(rows).toContain(sections.get(anchorOf(annotations['runbook_url']))?.title);
  });
});

test('the runbook has no section of an alert that there is not', () => {
  const anchors = alerts.map(({ annotations }) => anchorOf(annotations['runbook_url']));
  expect([...sections.keys()]).toEqual([...new Set(anchors)]);
});

test('groups have names of their own, as Prometheus demands', () => {
  expect(new Set(groups.map(({ name }) => name)).size).toBe(groups.length);
});
