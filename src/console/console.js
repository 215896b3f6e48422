/** @import { Asked, ConsoleEvent, UnknownWrite } from './event.d.ts' */
import { Plots } from './plots.js';
import { Ended, UnderWay } from './requests.js';
import { byId, element, milliseconds, number, setText, Table, timeOf } from './tables.js';

const AGAIN_MS = 3_000;
const MOST_ENDED = 200;
const MOST_UNKNOWN = 100;

const REFUSED = 'The gateway does not tell this page: eight others watch it already, or it is stopping.';

/** @type {readonly Asked[]} */
let ended = [];
/** @type {readonly UnknownWrite[]} */
let unknown = [];
/** @type {ConsoleEvent | undefined} */
let last;
let isPaused = false;
/** Why there are no events; empty while they come. */
let away = 'Connecting to the gateway…';
/** Whether the process has said that it stops. */
let isStopping = false;

const plots = new Plots(byId('plots-grid'));
const endedPart = new Ended();
const underWayPart = new UnderWay();

/** @type {Table<ConsoleEvent['accounts'][number]>} */
const accountsTable = new Table(byId('accounts-table'), {
  caption: 'Accounts that asked most in the last minute',
  keyOf: ({ account }) => account,
  sortedBy: 'Requests',
  columns: [
    { name: 'Account', isHead: true, className: 'id', text: ({ account }) => account },
    {
      name: 'Requests',
      className: 'number',
      order: ({ requests }) => requests,
      text: ({ requests }) => number(requests),
    },
    { name: 'Failed', className: 'number', order: ({ bad }) => bad, text: ({ bad }) => number(bad) },
  ],
});

/** @type {Table<UnknownWrite>} */
const unknownTable = new Table(byId('unknown-table'), {
  caption: 'Writes of which nobody knows whether they have happened',
  keyOf: ({ requestId, at }) => `${requestId} ${at}`,
  sortedBy: 'When',
  columns: [
    { name: 'When', order: ({ at }) => at, text: ({ at }) => timeOf(at) },
    { name: 'Operation', isHead: true, order: ({ operation }) => operation, text: ({ operation }) => operation },
    { name: 'Request id', className: 'id', text: ({ requestId }) => requestId },
    { name: 'Account', className: 'id', text: ({ account = '–' }) => account },
    { name: 'Idempotency key', text: ({ hasKey }) => (hasKey ? 'yes: it is not sent again' : 'none') },
  ],
});

/** @param {ConsoleEvent} event */
function cardsOf({ figures, underWayCount, circuit }) {
  const { gauges = {}, status = {}, requestMs = null, loopMs, memory } = figures ?? {};
  const all = Object.values(status).reduce((sum, one) => sum + one, 0);
  const isOpen = circuit !== null;
  return /** @type {const} */ ([
    ['Requests', figures ? `${number(all)} / s` : '–', false],
    ['Failing (5xx)', figures ? `${number(status['5xx'] ?? 0)} / s` : '–', (status['5xx'] ?? 0) > 0],
    ['p95', requestMs ? milliseconds(requestMs.p95) : '–', false],
    ['Under way', number(underWayCount), false],
    ['Slots in use', figures ? `${number(gauges['slots'] ?? 0)} of ${number(gauges['slotsLimit'] ?? 0)}` : '–', false],
    ['Waiting for one', figures ? number(gauges['waiting'] ?? 0) : '–', (gauges['waiting'] ?? 0) > 0],
    ['Circuit', isOpen ? 'open' : 'closed', isOpen],
    ['Event loop late', loopMs ? milliseconds(loopMs.max) : '–', (loopMs?.max ?? 0) > 200],
    ['Memory', memory ? `${number(Math.round(memory.rss))} MB` : '–', false],
  ]);
}

/** @param {ConsoleEvent} event */
function showNow(event) {
  const list = byId('now');
  cardsOf(event).forEach(([name, value, isBadValue], at) => {
    let card = list.children[at];
    if (!card) {
      card = document.createElement('div');
      card.append(element('dt', name), element('dd'));
      list.append(card);
    }
    card.classList.toggle('bad', isBadValue);
    const shown = card.querySelector('dd');
    if (shown) setText(shown, value);
  });
}

/** @param {ConsoleEvent} event */
function circuitText({ circuit, at }) {
  if (!circuit) return 'Closed: the upstream is asked.';
  const { since, probeAt } = circuit;
  const next = Math.max(0, Math.ceil((probeAt - at) / 1000));
  const probe = next > 0 ? `The next call is let through in ${next} s.` : 'The next call is let through.';
  return `Open since ${timeOf(since)}: half of the calls failed. ${probe}`;
}

function show() {
  if (!last) return;
  const { about, underWay, underWayCount, accounts } = last;
  showNow(last);
  endedPart.show();
  underWayPart.show(underWay, underWayCount);
  accountsTable.show(accounts);
  byId('accounts-empty').hidden = accounts.length > 0;
  unknownTable.show(unknown);
  byId('unknown-empty').hidden = unknown.length > 0;
  setText(byId('circuit-text'), circuitText(last));
  setText(byId('slow-from'), `Slow is what took ${milliseconds(about.slowMs)} or more.`);
  setText(
    byId('about'),
    `Portico ${about.version} on Node ${about.node}, process ${about.pid}, since ${timeOf(about.since)}.`,
  );
  plots.draw();
}

/** @param {ConsoleEvent} event */
function take(event) {
  if (event.isFirst) [ended, unknown] = [[], []];
  ended = [...ended, ...event.ended].slice(-MOST_ENDED);
  unknown = [...unknown, ...event.unknown].slice(-MOST_UNKNOWN);
  last = event;
  endedPart.set(ended);
  if (event.figures) plots.add(event.at, event.figures, event.about.isStoreShared);
}

function sayState() {
  const seen = last ? ` What you see is from ${timeOf(last.at)}.` : '';
  setText(byId('state'), away ? `${away}${seen}` : isPaused ? `Paused.${seen}` : 'Live, once a second');
  document.body.classList.toggle('away', away !== '');
}

function connect() {
  const source = new EventSource('/console/events');
  source.addEventListener('message', ({ data }) => {
    take(/** @type {ConsoleEvent} */ (JSON.parse(String(data))));
    isStopping = false;
    if (away) {
      away = '';
      sayState();
    }
    if (!isPaused) show();
  });
  source.addEventListener('stopping', () => {
    isStopping = true;
  });
  source.addEventListener('error', () => {
    // A browser tries again by itself where the connection was lost, not where it was refused.
    const isRefused = source.readyState === EventSource.CLOSED;
    const lost = isStopping ? 'The process has stopped.' : 'No connection to the gateway.';
    away = `${isRefused ? REFUSED : lost} Trying again.`;
    sayState();
    source.close();
    setTimeout(connect, AGAIN_MS);
  });
}

const pause = byId('pause');
pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.setAttribute('aria-pressed', String(isPaused));
  sayState();
  if (!isPaused) show();
});
connect();
