/** @param {string} tag @param {string} [text] @param {string} [className] */
export function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** Leaves what is right already, so that nothing is read out or laid out again. @param {Element} at @param {string} text */
export function setText(at, text) {
  if (at.textContent !== text) at.textContent = text;
}

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** @param {number} value */
export const number = (value) => numbers.format(value);

/** @param {number} ms */
export const milliseconds = (ms) => `${ms < 10 ? number(ms) : numbers.format(Math.round(ms))} ms`;

/** @param {number} at */
export const timeOf = (at) => new Date(at).toLocaleTimeString('en-GB');

/**
 * A column: `text` of a row, or what `write` makes of a cell, when the row is new and whenever it has changed. `order`: the
 * table can be sorted by that.
 * @template Row
 * @typedef {{
 *   readonly name: string,
 *   readonly className?: string,
 *   readonly isHead?: boolean,
 *   readonly text?: (row: Row) => string,
 *   readonly write?: (cell: HTMLElement, row: Row) => void,
 *   readonly order?: (row: Row) => number | string,
 * }} Column
 */

/**
 * @template Row
 * @typedef {{
 *   readonly caption: string,
 *   readonly columns: readonly Column<Row>[],
 *   readonly keyOf: (row: Row) => string,
 *   readonly sortedBy?: string,
 *   readonly detailOf?: (row: Row) => HTMLElement,
 *   readonly onToggle?: (isOpen: boolean) => void,
 * }} TableOptions
 */

/**
 * A part of a table that is one too where the style sheet lays it out in another way, on a narrow screen.
 * @template {'tr' | 'th' | 'td' | 'thead' | 'tbody'} Tag
 * @param {Tag} tag @param {string} role
 */
function roled(tag, role) {
  const made = document.createElement(tag);
  made.role = role;
  return made;
}

/** A row that is shown. @typedef {{ readonly row: HTMLTableRowElement, readonly cells: HTMLElement[], text: string }} Made */

/**
 * A table whose rows stay the same elements while they are shown, so that the focus stays where it is. With `detailOf` a
 * row opens: the button in it says so.
 * @template Row
 */
export class Table {
  /** @type {string | undefined} The key of the row that is open. */
  openKey;
  #sortedBy;
  #isDescending = true;
  /** @type {Map<string, Made>} */
  #rows = new Map();
  /** @type {readonly Row[]} */
  #shown = [];
  #detail = roled('tr', 'row');
  #detailText = '';

  /** @param {HTMLElement} table @param {TableOptions<Row>} options */
  constructor(table, options) {
    this.options = options;
    this.#sortedBy = options.sortedBy;
    const head = roled('tr', 'row');
    for (const column of options.columns) head.append(this.#headOf(column));
    const section = roled('thead', 'rowgroup');
    section.append(head);
    this.head = head;
    this.body = roled('tbody', 'rowgroup');
    table.role = 'table';
    table.replaceChildren(element('caption', options.caption), section, this.body);
    this.table = table;
    this.#detail.className = 'detail';
    this.#sayOrder();
  }

  /** @param {Column<Row>} column */
  #headOf({ name, order, className = '' }) {
    const cell = roled('th', 'columnheader');
    cell.scope = 'col';
    cell.className = className;
    if (!order) cell.textContent = name;
    else {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = name;
      button.addEventListener('click', () => this.#sortBy(name));
      cell.append(button);
    }
    return cell;
  }

  /** @param {string} name */
  #sortBy(name) {
    this.#isDescending = this.#sortedBy === name ? !this.#isDescending : true;
    this.#sortedBy = name;
    this.#sayOrder();
    this.show(this.#shown);
  }

  #sayOrder() {
    this.options.columns.forEach(({ name, order }, at) => {
      if (!order) return;
      const direction = this.#isDescending ? 'descending' : 'ascending';
      this.head.cells[at]?.setAttribute('aria-sort', name === this.#sortedBy ? direction : 'none');
    });
  }

  /** @param {readonly Row[]} rows */
  #sorted(rows) {
    const order = this.options.columns.find(({ name }) => name === this.#sortedBy)?.order;
    if (!order) return rows;
    const sign = this.#isDescending ? -1 : 1;
    return rows.toSorted((a, b) => {
      const [one, other] = [order(a), order(b)];
      return one === other ? 0 : one < other ? -sign : sign;
    });
  }

  /** @param {string} key */
  toggle(key) {
    this.openKey = this.openKey === key ? undefined : key;
    this.show(this.#shown);
    this.options.onToggle?.(this.openKey !== undefined);
  }

  /** Shows these rows; `most`: how many of them. @param {readonly Row[]} rows @param {number} [most] */
  show(rows, most = this.most) {
    this.most = most;
    this.#shown = rows;
    const { keyOf } = this.options;
    const kept = this.#sorted(rows).slice(0, most);
    /** @type {HTMLTableRowElement[]} */
    const wanted = [];
    /** @type {Map<string, Made>} */
    const known = new Map();
    let isOpenThere = false;
    for (const row of kept) {
      const key = keyOf(row);
      const made = this.#rows.get(key) ?? this.#made();
      known.set(key, made);
      this.#write(made, row);
      wanted.push(made.row);
      made.row.querySelector('button[aria-expanded]')?.setAttribute('aria-expanded', String(key === this.openKey));
      if (key !== this.openKey || !this.options.detailOf) continue;
      isOpenThere = true;
      this.#writeDetail(row);
      wanted.push(this.#detail);
    }
    if (!isOpenThere) this.openKey = undefined;
    this.#rows = known;
    place(this.body, wanted);
    this.table.hidden = wanted.length === 0;
  }

  most = Infinity;

  #made() {
    const row = roled('tr', 'row');
    const cells = this.options.columns.map(({ className = '', isHead }) => {
      const cell = isHead ? roled('th', 'rowheader') : roled('td', 'cell');
      if (isHead) cell.scope = 'row';
      cell.className = className;
      return cell;
    });
    row.append(...cells);
    return { row, cells, text: '' };
  }

  /** @param {Made} made @param {Row} row */
  #write(made, row) {
    const text = JSON.stringify(row);
    if (made.text === text) return;
    made.text = text;
    this.options.columns.forEach((column, at) => {
      const cell = made.cells[at];
      if (!cell) return;
      if (column.text) setText(cell, column.text(row));
      column.write?.(cell, row);
    });
  }

  /** @param {Row} row */
  #writeDetail(row) {
    const text = JSON.stringify(row);
    if (text === this.#detailText && this.#detail.isConnected) return;
    this.#detailText = text;
    const cell = roled('td', 'cell');
    cell.colSpan = this.options.columns.length;
    const detail = this.options.detailOf?.(row);
    if (detail) cell.append(detail);
    this.#detail.replaceChildren(cell);
  }
}

/** Moves only what is not in its place: an element that is moved loses the focus. @param {Element} parent @param {readonly Element[]} wanted */
function place(parent, wanted) {
  const stays = new Set(wanted);
  for (const child of Array.from(parent.children)) if (!stays.has(child)) child.remove();
  wanted.forEach((child, at) => {
    const there = parent.children[at];
    if (there !== child) parent.insertBefore(child, there ?? null);
  });
}
