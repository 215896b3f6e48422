/** @typedef {ReturnType<import('../entry/node/console/recordings.ts').Recordings['shown']>} Data */
/** @typedef {Data['requests'][number]} Asked */

const EVERY_MS = 2_000;

/** What a request can wait for, in words. */
const PHASES = {
  attempt: 'call of the upstream',
  'back-off': 'pause before the next attempt',
  slot: 'waited for a slot to the upstream',
  joined: 'waited for another call',
  store: 'asked the shared store',
  gates: 'waited for the headers that a hook gives',
  own: 'the gateway itself',
};

const PLOTS = /** @type {const} */ ([
  ['status', 'Requests by status', ' / s'],
  ['duration', 'Latency', ' ms'],
  ['cache', 'Reads by cache', ' / s'],
  ['failures', 'Failed upstream calls', ' / s'],
]);

/** @param {string} id @returns {HTMLElement} */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {string} tag @param {string} className @param {(Node | string)[]} children */
function element(tag, className, ...children) {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}

/** @param {string} tag @param {Record<string, string>} attributes @param {Node[]} children */
function svg(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** @param {number} value */
const number = (value) => value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 });
/** @param {number} value */
const milliseconds = (value) => `${number(value)} ms`;
/** @param {number} at */
const timeOf = (at) => new Date(at).toLocaleTimeString('en-GB');

/** @param {(typeof PLOTS)[number]} plot @param {Data['plots']} plots */
function figureOf([what, title, unit], plots) {
  const factor = what === 'duration' ? 1 : 1_000 / plots.stepMs;
  const lines = Object.entries(plots[what]).map(([name, values]) => {
    return { name, values: values.slice(0, -1).map((value) => value && value * factor) }; // the last step is not over
  });
  const top = Math.max(0.1, ...lines.flatMap(({ values }) => values.map(Number)));
  const keys = lines.map(({ name, values: all }) =>
    element('span', `key c-${name}`, `${name} ${number(all.at(-1) ?? 0)}\u2003`),
  );
  const drawn = lines.map(({ name, values }) => {
    const points = values.flatMap((value, at) => (value === null ? [] : `${at},${59 - (value / top) * 58}`));
    return svg('polyline', { class: `c-${name}`, points: values.some(Boolean) ? points.join(' ') : '' });
  });
  const scale = lines.length > 0 ? `up to ${number(top)}${unit}` : 'none';
  return element(
    'figure',
    '',
    element('figcaption', '', element('strong', '', `${title}, ${scale}`), element('br', ''), ...keys),
    svg('svg', { viewBox: '0 0 299 60', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, ...drawn),
  );
}

/**
 * The leg that ended last, since the others did not hold the request up, and what most of its time went to. A leg that waited
 * for another one of the same request counts without that time.
 * @param {Asked} asked
 */
function slowestOf({ legs, phases }) {
  /** @param {Asked['legs'][number]} leg */
  const timeAlone = ({ name, ms }) =>
    phases.reduce(
      (left, one) => (one.phase === 'joined' && one.leg === name && !one.joined ? left - (one.end - one.start) : left),
      ms,
    );
  const leg = legs.toSorted((a, b) => timeAlone(b) - timeAlone(a))[0];
  const [phase = 'own', ms = 0] = Object.entries(leg?.sums ?? {}).toSorted(([, a], [, b]) => b - a)[0] ?? [];
  return { leg: leg?.name ?? '', phase: /** @type {keyof typeof PHASES} */ (phase), ms };
}

/** @param {Asked} asked */
function answerOf({ status, code, reason, sections: { failed, stale } }) {
  const [without, old] = [failed?.join(', '), stale?.join(', ')];
  const parts = [code, reason && `upstream: ${reason}`, without && `without ${without}`, old && `stale: ${old}`];
  return [status, ...parts.filter(Boolean)].join(', ');
}

/** @param {Asked} asked */
function rowOf(asked) {
  const { leg, phase, ms } = slowestOf(asked);
  const button = element(
    'button',
    '',
    element('span', 'quiet', timeOf(asked.at + asked.ms)),
    element('strong', '', asked.operation),
    element('span', '', milliseconds(asked.ms)),
    element('span', asked.status >= 500 ? 'bad' : '', answerOf(asked)),
    element('span', 'quiet', `${leg === asked.operation ? '' : `${leg}: `}${PHASES[phase]} ${milliseconds(ms)}`),
  );
  button.addEventListener('click', () => openWaterfall(asked));
  return element('li', asked.isBad ? 'notable' : 'fine', button);
}

/** What a leg waited for, with a bar for each in proportion to the whole request. @param {Asked} asked @param {string} [leg] */
function legOf(asked, leg) {
  const whole = Math.max(asked.ms, 0.1);
  const items = asked.phases
    .filter((one) => one.leg === leg && (one.outcome || one.end > one.start))
    .map(({ phase, start, end, status, outcome, reason, joined }) => {
      const whose = joined && `of request ${joined}`;
      const facts = [PHASES[phase], whose, outcome, reason, status].filter(Boolean).join(', ');
      const colour = outcome === 'failed' ? 'c-failed' : `c-${phase}`;
      const [x, width] = [`${(start / whole) * 100}%`, `${Math.max(0.3, ((end - start) / whole) * 100)}%`];
      const bar = svg('svg', { 'aria-hidden': 'true' }, svg('rect', { class: colour, height: '100%', x, width }));
      return element('li', '', `${milliseconds(end - start)}: ${facts} (began after ${milliseconds(start)})`, bar);
    });
  const { name = 'Before its sections', ms = 0 } =
    asked.legs.find((one) => one.name === (leg ?? asked.operation)) ?? {};
  const title = ms > 0 ? `${name}: ${milliseconds(ms)}` : name;
  return { ms, parts: [element('h3', '', title), element('ul', '', ...items)] };
}

/** @param {Asked} asked */
function openWaterfall(asked) {
  const { operation, id, account = 'none', at, sections, phases } = asked;
  const { leg, phase, ms } = slowestOf(asked);
  const title = element('h2', '', `${operation} took ${milliseconds(asked.ms)}`);
  title.id = 'waterfall-title';
  const waited = leg === operation ? 'Most of it' : `It waited for ${leg}. Most of that`;
  const legs = Array.from(new Set(phases.map((one) => one.leg)), (name) => legOf(asked, name));
  const close = element('button', '', 'Close');
  close.addEventListener('click', () => dialog.close());
  dialog.replaceChildren(
    title,
    element('p', '', element('strong', '', `${waited}: ${PHASES[phase]}, ${milliseconds(ms)}.`)),
    element('p', '', `Answered with ${answerOf(asked)}`),
    element('p', 'quiet', `Began at ${timeOf(at)}, request id ${id}, account ${account}`),
    ...legs.toSorted((a, b) => b.ms - a.ms).flatMap(({ parts }) => parts),
    element('p', 'quiet', sections.fresh ? `Fresh copies answered ${sections.fresh.join(', ')}.` : ''),
    close,
  );
  dialog.showModal();
}

/** @param {string} id @param {readonly string[]} lines */
const writeList = (id, lines) =>
  byId(id).replaceChildren(...(lines.length > 0 ? lines : ['None so far.']).map((line) => element('li', '', line)));

/** @param {Data} data */
function show({ at, version, startedAt, slowMs, circuit, plots, requests, unknown }) {
  for (const one of requests) if (one.number > since) list.prepend(rowOf(one));
  since = Math.max(since, ...requests.map((one) => one.number));
  for (const kind of ['.notable', '.fine'])
    for (const row of Array.from(list.querySelectorAll(kind)).slice(200)) row.remove();
  byId('none').hidden = list.querySelector('.notable') !== null;
  byId('plots').replaceChildren(...PLOTS.map((plot) => figureOf(plot, plots)));
  byId('circuit').classList.toggle('bad', circuit !== null);
  const seconds = Math.max(0, Math.ceil(((circuit?.probeAt ?? at) - at) / 1_000));
  byId('circuit').textContent = circuit
    ? `Circuit open since ${timeOf(circuit.since)}: the upstream fails. ${seconds > 0 ? `In ${seconds} s a` : 'The next'} request is let through to try.`
    : 'Circuit closed';
  byId('slow').textContent = `Slow is ${milliseconds(slowMs)} or more.`;
  byId('about').textContent = `version ${version}, started ${new Date(startedAt).toLocaleString('en-GB')}`;
  const writes = unknown.toReversed().map(({ at: time, operation, requestId, account = 'none', hasKey }) => {
    const key = hasKey ? 'with' : 'without';
    return `${timeOf(time)} ${operation}, request id ${requestId}, account ${account}, ${key} idempotency key`;
  });
  writeList('unknown', writes);
}

/** Asks while the page is visible. A process that has begun anew is asked for all it has. */
async function ask() {
  if (document.visibilityState !== 'visible') return;
  let state = 'Live';
  try {
    const answer = await fetch(`/console/data?since=${since}`, { signal: AbortSignal.timeout(5 * EVERY_MS) });
    const data = /** @type {Data} */ (await answer.json());
    if (startedAt && startedAt !== data.startedAt) location.reload();
    startedAt = data.startedAt;
    show(data);
    seenAt = data.at;
  } catch {
    state = `The gateway does not answer.${seenAt ? ` What you see is from ${timeOf(seenAt)}.` : ''}`;
  }
  byId('state').textContent = state;
  byId('state').className = state === 'Live' ? '' : 'bad';
}

const list = byId('requests');
const dialog = /** @type {HTMLDialogElement} */ (byId('waterfall'));
let since = 0;
let startedAt = 0;
let seenAt = 0;
byId('all').addEventListener('change', () => list.classList.toggle('all'));
document.addEventListener('visibilitychange', () => void ask());
setInterval(() => void ask(), EVERY_MS);
void ask();
