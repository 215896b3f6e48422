import { afterAll, beforeAll, expect, test } from 'vitest';
import { scrapeEverything } from '../metrics/everything.ts';
import type { Scraped } from '../metrics/exposition.ts';
import { promql } from '../metrics/promql.ts';
import { alerts } from './file.ts';

let scraped: Scraped;

beforeAll(async () => {
  scraped = await scrapeEverything(afterAll);
});

const labelsOf = (name: string) =>
  new Set(scraped.samples.filter((sample) => sample.name === name).flatMap(({ labels }) => Object.keys(labels)));

const valuesOf = (name: string, label: string) =>
  new Set(scraped.samples.filter((sample) => sample.name === name).map(({ labels }) => labels[label]));

test.each(alerts)('$alert ($labels.severity) asks for what exists, and of counters only how they grow', ({ expr }) => {
  const { selectors, grouping } = promql(expr);
  expect(selectors).not.toHaveLength(0);
  for (const { names, matchers, isRange } of selectors)
    for (const name of names) {
      expect(scraped.familyOf(name), name).toBeDefined();
      if (scraped.familyOf(name)?.type !== 'gauge') expect([name, isRange]).toEqual([name, true]);
      for (const { label, value } of matchers)
        for (const one of value.split('|'))
          expect([name, label, [...valuesOf(name, label)]]).toEqual([name, label, expect.arrayContaining([one])]);
    }
  const known = new Set(['job', ...selectors.flatMap(({ names }) => names.flatMap((name) => [...labelsOf(name)]))]);
  expect(grouping.filter((label) => !known.has(label))).toEqual([]);
});

test.each(alerts)(
  '$alert ($labels.severity) is one for a fleet, or names the instance',
  ({ alert, expr, annotations }) => {
    const { grouping, isAggregate } = promql(expr);
    const isByInstance = annotations['summary']?.includes('$labels.instance');
    expect([alert, isAggregate, grouping.includes('job')]).toEqual([alert, !isByInstance, !isByInstance]);
    expect(grouping).not.toContain('instance');
  },
);
