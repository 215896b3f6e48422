import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { complaintsOf } from '../deploy/files.ts';
import { hasPrometheus, SKIPPED } from '../support/prometheus.ts';
import { alerts, PATH } from './file.ts';
import { goodRun, latencies, ofBoth, on, type Series } from './series.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'portico-alerts-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** An alert as it fires: its name, severity and further labels. */
type Firing = readonly [alert: string, severity: string, labels?: Readonly<Record<string, string>>];

interface Case {
  readonly says: string;
  /** In the place of those of a good run with these names. */
  readonly series: Series;
  /** What fires, and nothing else, so many minutes after the begin. */
  readonly firing: Readonly<Record<number, readonly Firing[]>>;
}

const sampleOf = ([alertname, severity, others]: Firing) => {
  const labels = { alertname, alertstate: 'firing', job: 'portico', severity, ...others };
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return { labels: `ALERTS{${pairs.join(',')}}`, value: 1 };
};

/** What promtool has to say, with the windows that are in the file. */
function played({ series, firing }: Omit<Case, 'says'>): string {
  const minutes = Math.max(...Object.keys(firing).map(Number));
  const file = join(folder, 'test.yaml');
  const tests = {
    interval: '1m',
    input_series: Object.entries({ ...goodRun(minutes), ...series }).map(([name, values]) => ({
      series: name,
      values,
    })),
    promql_expr_test: Object.entries(firing).map(([at, list]) => ({
      expr: 'ALERTS{alertstate="firing"}',
      eval_time: `${at}m`,
      exp_samples: list.map(sampleOf),
    })),
  };
  // Of a long run not each minute, which would take seconds.
  const evaluated = { rule_files: [PATH], evaluation_interval: minutes > 600 ? '5m' : '1m' };
  writeFileSync(file, JSON.stringify({ ...evaluated, tests: [tests] })); // JSON is YAML
  return complaintsOf('promtool', ['test', 'rules', file]);
}

const BURN = 'PorticoErrorBudgetBurn';
const page = (alert: string, labels = {}): Firing => [alert, 'page', labels];
const ticket = (alert: string, labels = {}): Firing => [alert, 'ticket', labels];
const requests = (status: string, labels: string, operation = 'getA') =>
  `portico_requests_total{operation="${operation}",status="${status}",${labels}}`;
const calls = (reason: string, labels: string) =>
  `portico_upstream_calls_total{operation="getA",outcome="failed",reason="${reason}",${labels}}`;
const writes = (outcome: string, labels: string) => `portico_idempotency_total{outcome="${outcome}",${labels}}`;

const BUDGET: readonly Case[] = [
  {
    says: 'an outage of a fleet is one page, minutes after it began, which ends minutes after it has, though the hour is spoilt',
    series: ofBoth((at) => ({
      [requests('2xx', at)]: '0+600x120 72000x30 72000+600x60',
      [requests('5xx', at)]: '0x120 0+600x30 18000x60',
    })),
    firing: { 120: [], 123: [page(BURN), ticket(BURN)], 145: [page(BURN), ticket(BURN)], 158: [ticket(BURN)] },
  },
  {
    says: 'the very first requests of an instance, all of which failed before its second scrape, are told of',
    series: ofBoth((at) => ({
      [requests('2xx', at)]: '0x10',
      [requests('4xx', at)]: '0x10',
      [requests('5xx', at)]: '0 29x9',
    })),
    firing: { 0: [], 2: [page(BURN), ticket(BURN)], 4: [page(BURN), ticket(BURN)] },
  },
  {
    says: 'an outage in which the instances are restarted again and again is a page',
    series: ofBoth((at) => ({
      [requests('2xx', at)]: '0+600x60 0x30',
      [requests('5xx', at)]: '0x60 0+60x4 0+60x4 0+60x4 0+60x4 0+60x10',
    })),
    firing: { 60: [], 75: [page(BURN), ticket(BURN)], 84: [page(BURN), ticket(BURN)] },
  },
  {
    says: 'failures of long ago are none when the counters begin again',
    series: ofBoth((at) => ({
      [requests('2xx', at)]: '0+600x60 0+600x120',
      [requests('5xx', at)]: '5000x60 0x120',
    })),
    firing: { 59: [], 61: [], 63: [], 120: [] },
  },
  {
    says: 'five failures of fifty requests at night wake nobody',
    series: ofBoth((at) => ({
      [requests('2xx', at)]: '0+1x120',
      [requests('4xx', at)]: '0x120',
      [requests('5xx', at)]: '0x60 0 1 1 2 2 2 2 2x60',
    })),
    firing: { 62: [], 64: [], 70: [], 120: [] },
  },
  {
    says: 'one failure of a hundred is within what a page allows, and a ticket',
    series: ofBoth((at) => ({ [requests('5xx', at)]: '0x60 0+6x240' })),
    firing: { 60: [], 240: [ticket(BURN)] },
  },
  {
    says: 'one failure of 200 is a ticket once it has gone on for a good part of a day, and no page',
    series: ofBoth((at) => ({ [requests('5xx', at)]: '0x1440 0+3x1500' })),
    firing: { 1440: [], 1800: [], 2700: [ticket(BURN)] },
  },
  {
    says: 'one failure of 1,200 is what the budget is for',
    series: ofBoth((at) => ({ [requests('2xx', at)]: '0+1140x120', [requests('5xx', at)]: '0+1x120' })),
    firing: { 30: [], 120: [] },
  },
  {
    says: 'methods and paths that there are not are nobody’s operation',
    series: ofBoth((at) => ({ [requests('5xx', at, '(none)')]: '0+6000x120' })),
    firing: { 30: [], 120: [] },
  },
];

const SLOW: readonly Case[] = [
  {
    says: 'two slow requests of a hundred are a ticket after ten minutes',
    series: ofBoth((at) => latencies(at, { good: '0+660x30 19800+490x60', all: '0+660x30 19800+500x60' })),
    firing: { 30: [], 38: [], 50: [ticket('PorticoSlow')], 60: [ticket('PorticoSlow')] },
  },
  {
    says: 'five bad minutes are none, nor is one slow request of two hundred for ever',
    series: {
      ...latencies(on('a'), { good: '0+660x30 19800+400x5 21800+660x60', all: '0+660x30 19800+500x5 22300+660x60' }),
      ...latencies(on('b'), { good: '0+995x100', all: '0+1000x100' }),
    },
    firing: { 32: [], 36: [], 40: [], 45: [], 60: [] },
  },
  {
    says: 'no request at all is not slow',
    series: ofBoth((at) => latencies(at, { good: '5x60', all: '9x60' })),
    firing: { 30: [], 60: [] },
  },
];

const CIRCUIT: readonly Case[] = [
  {
    says: 'a circuit that stays open is one page, however many instances have one',
    series: ofBoth((at) => ({ [`portico_circuit_open{${at}}`]: '0x10 1x10 0x10' })),
    firing: { 10: [], 11: [], 13: [page('PorticoCircuitOpen')], 20: [page('PorticoCircuitOpen')], 22: [] },
  },
  {
    says: 'one of them is enough, and a circuit that closes within the minute is none',
    series: { [`portico_circuit_open{${on('a')}}`]: '0x10 1 0x10 1x10' },
    firing: { 11: [], 12: [], 15: [], 25: [page('PorticoCircuitOpen')] },
  },
];

const NAMES: readonly Case[] = [
  ...['tls', 'dns'].map((reason) => ({
    says: `calls that fail by ${reason} are a page that says so, from the first scrape on, and end with it`,
    series: ofBoth((at) => ({ [calls(reason, at)]: '0 20 40+12x10 160x20' })),
    firing: {
      0: [],
      3: [page('PorticoUpstreamTlsOrDns', { reason })],
      12: [page('PorticoUpstreamTlsOrDns', { reason })],
      20: [],
    },
  })),
  {
    says: 'a resolver that failed four times is none, nor are counters that begin again, nor other reasons',
    series: ofBoth((at) => ({
      [calls('dns', at)]: '0x10 2x20',
      [calls('tls', at)]: '900x10 0x20',
      [calls('status', at)]: '0+60x30',
    })),
    firing: { 9: [], 11: [], 12: [], 14: [], 20: [] },
  },
];

const usable = (at: string, values: string, { up = '1x60', givenUp = '0x60' } = {}): Series => ({
  [`portico_store_usable{${at}}`]: values,
  [`portico_store_up{${at}}`]: up,
  [`portico_store_waits_given_up_total{${at}}`]: givenUp,
});

const STORE: readonly Case[] = [
  {
    says: 'a store that is up and too far away is a page, which ends with it',
    series: ofBoth((at) => usable(at, '1x10 0x20 1x20', { givenUp: '0x10 0+600x20 12000x20' })),
    firing: { 10: [], 14: [page('PorticoStoreUnusable')], 30: [page('PorticoStoreUnusable')], 36: [] },
  },
  {
    says: 'a store that is gone is a page though nobody asks, and so is the half of a cluster, and one that was never there',
    series: {
      ...usable(on('a'), '1x10 0x10 1x20', { up: '1x10 0x10 1x20' }),
      ...usable(on('b'), '0x4 1x20 0.5x20', { up: '0x4 1x20 0.5x20' }),
    },
    firing: {
      2: [page('PorticoStoreUnusable')],
      10: [],
      14: [page('PorticoStoreUnusable')],
      24: [],
      40: [page('PorticoStoreUnusable')],
    },
  },
  {
    says: 'a late answer now and then is none',
    series: ofBoth((at) => usable(at, '1x10 0 1x10 0 1x20', { givenUp: '0x10 1x10 2x20' })),
    firing: { 10: [], 12: [], 14: [], 22: [], 24: [] },
  },
  {
    says: 'a late answer after which nobody asked for the rest of the night is none',
    series: ofBoth((at) => usable(at, '1x10 0x50', { givenUp: '0x10 1x50' })),
    firing: { 12: [], 20: [], 50: [] },
  },
];

const OUTCOMES: readonly Case[] = [
  ...['unknown', 'outcome_unknown'].map((outcome) => ({
    says: `a single write that ends as ${outcome} is a ticket at once, for an hour`,
    series: { [writes(outcome, on('a'))]: '0 0 1x120' },
    firing: { 1: [], 3: [ticket('PorticoUnknownOutcome')], 55: [ticket('PorticoUnknownOutcome')], 65: [] },
  })),
  {
    says: 'those of last week are none when the counters begin again, nor are replays and refusals',
    series: ofBoth((at) => ({
      [writes('unknown', at)]: '7x60 0x60',
      [writes('replayed', at)]: '0+90x120',
      [writes('key_reused', at)]: '0+9x120',
    })),
    firing: { 30: [], 61: [], 65: [], 120: [] },
  },
];

const DRIFT: readonly Case[] = [
  {
    says: 'fields that do not fit are a ticket for each operation, after a restart too',
    series: ofBoth((at) => ({
      [`portico_drift_total{operation="getA",${at}}`]: '0 3x10 0 2x100',
      [`portico_drift_total{operation="getB",${at}}`]: '4x10 0x100',
    })),
    firing: {
      0: [],
      2: [ticket('PorticoDrift', { operation: 'getA' })],
      60: [ticket('PorticoDrift', { operation: 'getA' })],
      80: [],
    },
  },
];

const refusals = (by: string, labels: string) => `portico_refused_total{by="${by}",${labels}}`;

const FULL = {
  requests: ['portico_requests_under_way', '1900'],
  connections: ['portico_connections', '3900'],
  calls: ['portico_upstream_calls_under_way', '256'],
  records: ['portico_idempotency_bytes', '60'],
} as const;

const SATURATED: readonly Case[] = [
  ...Object.entries(FULL).map(([what, [name, value]]) => ({
    says: `${what} near their bound are a page that names the instance, and end with it`,
    series: {
      [`${name}{${on('b')}}`]: `1x10 ${value}x20 1x20`,
      [`portico_idempotency_bytes_limit{${on('b')}}`]: '67x60',
    },
    firing: {
      10: [],
      17: [page('PorticoSaturated', { instance: 'b', what })],
      30: [page('PorticoSaturated', { instance: 'b', what })],
      36: [],
    },
  })),
  {
    says: 'requests that are refused, since too many are under way, are a page that names the instance',
    series: {
      [refusals('under_way', on('b'))]: '0x10 0+120x20 2400x20',
      [refusals('rate_limit', on('a'))]: '0+600x60',
    },
    firing: {
      10: [],
      18: [page('PorticoSaturated', { instance: 'b', by: 'under_way', what: 'refused' })],
      30: [page('PorticoSaturated', { instance: 'b', by: 'under_way', what: 'refused' })],
      36: [],
    },
  },
  {
    says: 'a burst is none, nor is what has no bound',
    series: ofBoth((at) => ({
      [refusals('under_way', at)]: '900x5 0x5 60x40',
      [`portico_upstream_calls_under_way{${at}}`]: '10x10 256 256 10x30',
      [`portico_connections_limit{${at}}`]: '0x60',
      [`portico_connections{${at}}`]: '0x60',
    })),
    firing: { 11: [], 12: [], 14: [], 20: [], 30: [] },
  },
];

const TABLE: Readonly<Record<string, readonly Case[]>> = {
  [BURN]: BUDGET,
  PorticoSlow: SLOW,
  PorticoCircuitOpen: CIRCUIT,
  PorticoUpstreamTlsOrDns: NAMES,
  PorticoStoreUnusable: STORE,
  PorticoUnknownOutcome: OUTCOMES,
  PorticoDrift: DRIFT,
  PorticoSaturated: SATURATED,
};

test('every alert is played with', () => {
  expect(Object.keys(TABLE)).toEqual([...new Set(alerts.map(({ alert }) => alert))]);
});

describe.skipIf(!hasPrometheus)(`alerts, on made series with the windows that they have${SKIPPED}`, () => {
  test('are rules that promtool knows', () => {
    expect(complaintsOf('promtool', ['check', 'rules', PATH])).toBe('');
  });

  test('are silent for a day in which nothing is wrong', () => {
    expect(played({ series: {}, firing: { 1: [], 5: [], 60: [], 1440: [] } })).toBe('');
  });

  test('are silent where nothing is scraped yet, or nobody asks', () => {
    const still = Object.fromEntries(Object.keys(goodRun(0)).map((name) => [name, '0x60']));
    const store = ofBoth((at) => usable(at, '1x60'));
    expect(played({ series: { ...still, ...store }, firing: { 0: [], 1: [], 60: [] } })).toBe('');
  });

  describe.each(Object.entries(TABLE))('%s', (_, cases) => {
    test.each(cases)('$says', (one) => {
      expect(played(one)).toBe('');
    });
  });

  test('and this can fail', () => {
    const [{ series }] = CIRCUIT as readonly [Case];
    expect(played({ series, firing: { 13: [] } })).toContain('PorticoCircuitOpen');
  });
});
