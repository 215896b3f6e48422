/** @import { Asked, Leg, Phase } from './event.d.ts' */
import { element, milliseconds, number } from './tables.js';

/** Why an attempt failed, in words. */
const REASONS = /** @type {Readonly<Record<string, string>>} */ ({
  dns: 'the upstream’s name has no address',
  refused: 'the upstream refuses connections',
  tls: 'TLS with the upstream fails',
  reset: 'the connection went away before the whole answer',
  unreachable: 'there is no way to the upstream',
  timeout: 'no answer in time',
  status: 'the upstream answered with an error of its own',
  bad_body: 'the upstream’s answer cannot be read',
  too_large: 'the upstream’s answer is too large',
});

const OUTCOMES = /** @type {Readonly<Record<string, string>>} */ ({
  good: 'the upstream answered',
  refused: 'the upstream refused it',
  abandoned: 'given up: nobody waited for it any longer',
});

/** What each phase is, in words. */
const PHASES = /** @type {Readonly<Record<string, string>>} */ ({
  gates: 'until the call could be sent: what a hook of yours prepares',
  slot: 'in the queue for a slot to the upstream: all, or all of this account’s share, were taken',
  store: 'asked the shared store',
  lease: 'another instance was fetching the same',
  'back-off': 'a pause before the next attempt',
  attempt: 'a call sent to the upstream, until its answer',
  joined: 'another call that it joined',
  own: 'what the gateway itself does',
});

/** @param {Phase} phase @param {number} attempt the how many-th attempt of its leg it is */
function whyOf({ phase, outcome, status, reason, joined, fact, open }, attempt) {
  const still = open ? ', and it goes on' : '';
  if (phase === 'attempt') {
    const became =
      outcome === 'failed' ? `failed: ${reasonIn(reason)}` : (OUTCOMES[outcome ?? ''] ?? 'sent to the upstream');
    return `number ${attempt}: ${became}${status === undefined ? '' : ` (${status})`}${still}`;
  }
  if (phase === 'joined') {
    if (joined === undefined) return `waited for another section that it needs${still}`;
    return `joined the call of request ${joined}${gaveOf(fact)}${still}`;
  }
  if (phase === 'store' && fact === 'again') return 'looked up again in the shared store, after waiting in vain';
  const words = PHASES[phase] ?? phase;
  return `${words}${phase === 'lease' ? gaveOf(fact) : ''}${still}`;
}

/** @param {string | undefined} fact */
const gaveOf = (fact) =>
  fact === 'gave' ? ', which gave the answer' : fact === 'gave_nothing' ? ', which gave nothing: looked up again' : '';

/** @param {string | undefined} reason */
export const reasonIn = (reason) =>
  reason === undefined ? 'for a reason that is not known' : (REASONS[reason] ?? reason);

/** The leg that ended last: the others did not hold the request up. @param {Asked} asked @returns {Leg | undefined} */
export const slowestOf = ({ legs }) =>
  legs.reduce((/** @type {Leg | undefined} */ a, b) => (a && a.ms >= b.ms ? a : b), undefined);

/** Phases of a leg, the longest first. @param {Leg} leg */
export const partsOf = ({ sums }) =>
  Object.entries(sums)
    .filter(([, ms]) => ms >= 0.1)
    .toSorted(([, a], [, b]) => b - a);

/** @param {Leg} leg */
const sumsIn = (leg) =>
  partsOf(leg)
    .map(([phase, ms]) => `${phase} ${milliseconds(ms)}`)
    .join(', ');

/** @param {HTMLElement} at @param {number} from @param {number} to parts of the whole */
function stretch(at, from, to) {
  at.style.marginInlineStart = `${from * 100}%`;
  at.style.width = `max(2px, ${Math.max(0, to - from) * 100}%)`;
}

/** Phases of a leg beside each other, in proportion to the whole request. @param {Leg} leg @param {number} whole */
export function barOf(leg, whole) {
  const bar = element('span', undefined, 'bar');
  bar.ariaHidden = 'true';
  for (const [phase, ms] of partsOf(leg)) {
    const part = element('span', undefined, `part ${phase}`);
    part.style.width = `${(ms / Math.max(whole, leg.ms)) * 100}%`;
    bar.append(part);
  }
  return bar;
}

/** @param {Asked} asked */
export function waterfallOf(asked) {
  const box = element('div', undefined, 'waterfall');
  box.append(summaryOf(asked), factsOf(asked));
  const table = document.createElement('table');
  table.append(
    element(
      'caption',
      `What it waited for, from its start to ${milliseconds(asked.ms)}${asked.status === undefined ? ', now' : ''}`,
    ),
    headOf(),
  );
  const slowest = slowestOf(asked);
  const common = asked.phases.filter(({ leg }) => leg === undefined);
  const named = asked.legs.some(({ leg }) => asked.phases.some((one) => one.leg === leg));
  if (named && common.length > 0) table.append(groupOf('All legs', common, asked));
  for (const leg of asked.legs.toSorted((a, b) => b.ms - a.ms)) {
    const phases = named ? asked.phases.filter((one) => one.leg === leg.leg) : common;
    const mark = leg === slowest && asked.legs.length > 1 ? ', the slowest' : '';
    table.append(groupOf(`${leg.leg}${mark}: ${milliseconds(leg.ms)}. ${sumsIn(leg)}`, phases, asked));
  }
  box.append(table);
  if (asked.more > 0) box.append(element('p', `${number(asked.more)} more phases are not shown.`));
  return box;
}

/** @param {Asked} asked */
const tookOf = ({ ms, status }) =>
  status === undefined ? `${milliseconds(ms)} so far.` : `It took ${milliseconds(ms)}.`;

/** @param {Asked} asked */
function summaryOf(asked) {
  const slowest = slowestOf(asked);
  const [longest] = slowest ? partsOf(slowest) : [];
  const text = element('p', undefined, 'verdict');
  if (!slowest || !longest) text.textContent = `${tookOf(asked)} It waited for nothing.`;
  else {
    const [phase, ms] = longest;
    const why = slowest.reason ? `; its last failure: ${reasonIn(slowest.reason)}` : '';
    text.append(
      `${tookOf(asked)} The slowest leg is `,
      element('strong', slowest.leg),
      ', and most of its time went to ',
      element('strong', `${phase}, ${milliseconds(ms)}`),
      ` (${PHASES[phase] ?? phase})${why}.`,
    );
  }
  return text;
}

/** @param {Asked} asked */
function factsOf({ id, account, cache, code, reason, method, operation, status, fresh, stale, failed }) {
  const list = document.createElement('dl');
  const facts = {
    Request: `${method} ${operation}`,
    'Request id': id,
    Account: account,
    Answer: [status, code].filter((one) => one !== undefined).join(' ') || 'not yet',
    'Last failure of the upstream': reason && reasonIn(reason),
    Cache: cache,
    'Fresh copies, no wait': fresh?.join(', '),
    'Stale copies': stale?.join(', '),
    'Failed sections': failed?.join(', '),
  };
  for (const [name, value] of Object.entries(facts)) {
    if (!value) continue;
    const pair = document.createElement('div');
    pair.append(element('dt', name), element('dd', value));
    list.append(pair);
  }
  return list;
}

function headOf() {
  const head = document.createElement('thead');
  const row = document.createElement('tr');
  for (const [name, className] of [
    ['What and why', ''],
    ['From', 'number'],
    ['Took', 'number'],
  ]) {
    const cell = document.createElement('th');
    cell.scope = 'col';
    cell.textContent = name ?? '';
    cell.className = className ?? '';
    row.append(cell);
  }
  head.append(row);
  return head;
}

/** @param {string} title @param {readonly Phase[]} phases @param {Asked} asked */
function groupOf(title, phases, { ms: whole }) {
  const group = document.createElement('tbody');
  const head = document.createElement('tr');
  const name = document.createElement('th');
  name.scope = 'rowgroup';
  name.colSpan = 3;
  name.textContent = title;
  head.append(name);
  group.append(head);
  let attempts = 0;
  for (const phase of phases.toSorted((a, b) => a.at - b.at)) {
    if (phase.phase === 'attempt') attempts++;
    group.append(rowOf(phase, attempts, whole));
  }
  return group;
}

/** @param {Phase} phase @param {number} attempt @param {number} whole */
function rowOf(phase, attempt, whole) {
  const row = document.createElement('tr');
  const what = document.createElement('td');
  const bar = element('span', undefined, 'bar');
  bar.ariaHidden = 'true';
  const part = element('span', undefined, `part ${phase.phase}${phase.outcome === 'failed' ? ' failed' : ''}`);
  const all = Math.max(whole, 0.1);
  stretch(part, Math.min(1, phase.at / all), Math.min(1, (phase.at + phase.ms) / all));
  bar.append(part);
  what.append(element('strong', phase.phase), ` ${whyOf(phase, attempt)}`, bar);
  const from = element('td', milliseconds(phase.at), 'number');
  const took = element('td', milliseconds(phase.ms), 'number');
  row.append(what, from, took);
  return row;
}
