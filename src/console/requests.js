/** @import { Asked } from './event.d.ts' */
/** @import { Column } from './tables.js' */
import { byId, element, milliseconds, number, setText, Table, timeOf } from './tables.js';
import { barOf, partsOf, reasonIn, slowestOf, waterfallOf } from './waterfall.js';

/** Rows that are shown at first. */
const FIRST_ROWS = 12;

/** @param {HTMLElement} cell @param {Asked} asked */
function writeWhere(cell, asked) {
  const leg = slowestOf(asked);
  cell.replaceChildren();
  if (!leg) return;
  const parts = partsOf(leg).filter(([, ms]) => ms >= leg.ms / 100);
  const words = parts.map(([phase, ms]) => `${phase} ${milliseconds(ms)}`).join(', ');
  const isWhole = asked.legs.length === 1 && leg.leg === asked.operation;
  if (!isWhole) cell.append(element('strong', leg.leg), ': ');
  cell.append(words || 'nothing', barOf(leg, asked.ms));
}

/** @param {HTMLElement} cell @param {Asked} asked */
function writeAnswer(cell, { status = 0, code, reason, failed }) {
  const why = [code, reason && `upstream: ${reason}`, failed && `without ${failed.join(', ')}`];
  setText(cell, [status, ...why.filter(Boolean)].join(', '));
  cell.classList.toggle('bad', status >= 500 || failed !== undefined);
}

/** The operation, as a button that opens the row. @param {() => Table<Asked>} table @returns {Column<Asked>} */
const opening = (table) => ({
  name: 'Operation',
  isHead: true,
  order: ({ operation }) => operation,
  write(cell, asked) {
    if (cell.firstChild) return;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'open';
    button.textContent = asked.operation;
    button.setAttribute('aria-expanded', 'false');
    button.addEventListener('click', () => table().toggle(keyOf(asked)));
    cell.append(button);
  },
});

/** Clients may send the same id twice. @param {Asked} asked */
const keyOf = ({ id, at }) => `${id} ${at}`;

/** @type {readonly Column<Asked>[]} */
const REST = [
  { name: 'Slowest leg, and what its time went to', className: 'where', write: writeWhere },
  { name: 'Request id', className: 'id wide', text: ({ id }) => id },
  { name: 'Account', className: 'id wide', order: ({ account = '' }) => account, text: ({ account = '–' }) => account },
];

/** @param {Asked} asked */
const waitsFor = ({ phases }) => {
  const open = phases.filter((one) => one.open);
  return open.map(({ phase, leg }) => (leg ? `${leg}: ${phase}` : phase)).join(', ') || '–';
};

/** Requests under way. */
export class UnderWay {
  /** @type {Table<Asked>} */
  #table = new Table(byId('under-way-table'), {
    caption: 'Requests under way',
    keyOf,
    detailOf: waterfallOf,
    columns: [
      opening(() => this.#table),
      { name: 'For', className: 'number', order: ({ ms }) => ms, text: ({ ms }) => milliseconds(ms) },
      { name: 'Waits for', className: 'answer', text: waitsFor },
      ...REST,
    ],
  });

  /** @param {readonly Asked[]} requests @param {number} count */
  show(requests, count) {
    this.#table.show(requests);
    byId('under-way-empty').hidden = requests.length > 0;
    const rest = count - requests.length;
    setText(byId('under-way-count'), rest > 0 ? `${number(rest)} more are not shown.` : '');
  }
}

/** @param {Asked} asked */
const searchedIn = (asked) => `${JSON.stringify(asked)} ${reasonIn(asked.reason)}`.toLowerCase();

/** Requests that were slow or failed. While one is open, newer ones wait, so that it stays where it is. */
export class Ended {
  /** @type {readonly Asked[]} */
  #all = [];
  /** @type {readonly Asked[] | undefined} */
  #held;
  #areAllShown = false;
  #filter = /** @type {HTMLInputElement} */ (byId('filter'));
  #more = byId('more');
  /** @type {Table<Asked>} */
  #table = new Table(byId('ended-table'), {
    caption: 'Requests that were slow or failed',
    keyOf,
    sortedBy: 'When',
    detailOf: waterfallOf,
    onToggle: (isOpen) => {
      this.#held = isOpen ? (this.#held ?? this.#all) : undefined;
      this.show();
    },
    columns: [
      { name: 'When', order: ({ at, ms }) => at + ms, text: ({ at, ms }) => timeOf(at + ms) },
      opening(() => this.#table),
      { name: 'Took', className: 'number', order: ({ ms }) => ms, text: ({ ms }) => milliseconds(ms) },
      { name: 'Answer', order: ({ status = 0 }) => status, className: 'answer', write: writeAnswer },
      ...REST,
    ],
  });

  constructor() {
    this.#filter.addEventListener('input', () => this.show());
    byId('filter-form').addEventListener('submit', (event) => event.preventDefault());
    this.#more.addEventListener('click', () => {
      this.#areAllShown = !this.#areAllShown;
      this.show();
    });
  }

  /** @param {readonly Asked[]} all the oldest first */
  set(all) {
    this.#all = all.toReversed();
  }

  show() {
    const wanted = this.#filter.value.trim().toLowerCase();
    const there = this.#held ?? this.#all;
    const rows = wanted === '' ? there : there.filter((one) => searchedIn(one).includes(wanted));
    this.#table.show(rows, this.#areAllShown || wanted !== '' ? Infinity : FIRST_ROWS);
    if (this.#table.openKey === undefined) this.#held = undefined;
    this.#sayRest(rows.length, wanted !== '');
  }

  /** @param {number} count @param {boolean} isFiltered */
  #sayRest(count, isFiltered) {
    const known = new Set(this.#held ?? this.#all);
    const waiting = this.#all.filter((one) => !known.has(one)).length;
    const none = this.#all.length === 0 ? 'None so far.' : 'None of them has that.';
    const empty = byId('ended-empty');
    empty.hidden = count > 0 && waiting === 0;
    setText(empty, count === 0 ? none : `Held while a request is open: ${number(waiting)} newer wait.`);
    this.#more.hidden = isFiltered || count <= FIRST_ROWS;
    setText(this.#more, this.#areAllShown ? `Show the first ${FIRST_ROWS} only` : `Show all ${number(count)}`);
  }
}
