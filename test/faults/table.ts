const COLUMNS = ['read', 'stale', 'overview leg', 'purchase'] as const;

export type Column = (typeof COLUMNS)[number];

/** What became of each fault in each place, gathered cell by cell. */
export class FaultTable {
  readonly #rows = new Map<string, Map<Column, string>>();
  #slowest = { where: '', overshootMs: -Infinity };

  add(fault: string, column: Column, cell: { readonly text: string; readonly overshootMs: number }): void {
    const row = this.#rows.get(fault) ?? new Map<Column, string>();
    this.#rows.set(fault, row.set(column, cell.text));
    const { overshootMs } = cell;
    if (overshootMs > this.#slowest.overshootMs) this.#slowest = { where: `${fault}, ${column}`, overshootMs };
  }

  /** Plain text, columns aligned. */
  toString(): string {
    const rows = Array.from(this.#rows, ([fault, cells]) => [
      fault,
      ...COLUMNS.map((column) => cells.get(column) ?? '–'),
    ]);
    const all = [['fault', ...COLUMNS], ...rows];
    const widths = [0, 1, 2, 3, 4].map((at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
    const lines = all.map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join(' | ')
        .trimEnd(),
    );
    const rule = widths.map((width) => '-'.repeat(width)).join('-|-');
    const [head = '', ...body] = lines;
    return [head, rule, ...body, '', ...this.#legend()].join('\n');
  }

  #legend(): string[] {
    const { where, overshootMs } = this.#slowest;
    return [
      'null: a section without data; unknown: the outcome of a write, as its problem says.',
      '×n: calls that reached the upstream; "×0 of n" where none could, of n that were tried.',
      `The slowest answer came ${overshootMs.toFixed(0)} ms after its deadline (${where}); 100 ms are promised.`,
    ];
  }
}
