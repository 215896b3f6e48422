/** @import { Figures } from './event.d.ts' */
import { element, number, setText } from './tables.js';

/**
 * A line of a plot. `colour`: the number of one in the style sheet. `dash`: for those that differ by more than colour.
 * @typedef {{ readonly name: string, readonly colour: number, readonly dash?: number[], readonly isSparse?: boolean, readonly of: (figures: Figures) => number | null | undefined }} Line
 */

/** @typedef {{ readonly title: string, readonly unit: string, readonly lines: readonly Line[], readonly note?: (figures: Figures) => string }} Plot */

const MB = 1_048_576;

/** Why calls failed, and the other ways in which they end. */
const CALLS = /** @type {const} */ ([
  ['good', 'good', 2],
  ['refused', 'refused by a 4xx', 3],
  ['abandoned', 'given up', 7],
  ['failed', 'failed', 4],
  ['failed timeout', 'failed: timeout', 4],
  ['failed status', 'failed: status', 8],
  ['failed reset', 'failed: reset', 5],
  ['failed refused', 'failed: connection refused', 1],
  ['failed dns', 'failed: dns', 6],
  ['failed tls', 'failed: tls', 3],
  ['failed unreachable', 'failed: unreachable', 7],
  ['failed bad_body', 'failed: bad body', 1],
  ['failed too_large', 'failed: too large', 6],
]);

/** @param {'rate' | 'ms'} what @returns {Line[]} */
const callLines = (what) =>
  CALLS.map(([key, name, colour], at) => {
    const of = (/** @type {Figures} */ { calls }) => calls[key]?.[what] ?? (what === 'rate' ? 0 : null);
    const made = { name, colour, of, isSparse: what === 'ms' };
    return at < 4 ? made : { ...made, dash: [6, 3] };
  });

/** @param {string} name @param {number} colour @param {Line['of']} of @param {number[]} [dash] @returns {Line} */
const line = (name, colour, of, dash) => (dash ? { name, colour, of, dash } : { name, colour, of });

/** @param {'requestMs' | 'storeMs'} what */
const quantiles = (what) => [
  line('p50', 1, (figures) => figures[what]?.p50),
  line('p95', 3, (figures) => figures[what]?.p95),
  line('p99', 4, (figures) => figures[what]?.p99, [6, 3]),
];

/** @type {Plot} */
const SHARED_STORE = {
  title: 'Shared store',
  unit: 'commands, ms',
  lines: quantiles('storeMs'),
  note: ({ gauges, storeFailures }) =>
    `${gauges['storeUsable'] ? 'usable' : 'not usable'}, ${number(storeFailures)} failures per second, ` +
    `${number(gauges['storePending'] ?? 0)} reports pending`,
};

/** @type {Plot} */
const OWN_STORE = {
  title: 'Store of this process',
  unit: 'copies, MB',
  lines: [line('in use', 1, ({ gauges }) => (gauges['cacheBytes'] ?? 0) / MB)],
  note: ({ gauges }) => `of ${number((gauges['cacheBytesLimit'] ?? 0) / MB)} MB`,
};

/** @param {boolean} isStoreShared @returns {Plot[]} */
const plotsWith = (isStoreShared) => [
  {
    title: 'Requests by status',
    unit: 'per second',
    lines: [
      line('2xx', 2, ({ status }) => status['2xx']),
      line('3xx', 1, ({ status }) => status['3xx']),
      line('4xx', 3, ({ status }) => status['4xx'], [6, 3]),
      line('5xx', 4, ({ status }) => status['5xx']),
    ],
  },
  { title: 'Latency of requests', unit: 'ms', lines: quantiles('requestMs') },
  {
    title: 'Cache',
    unit: 'reads per second',
    lines: [
      line('hit', 2, ({ cache }) => cache['hit']),
      line('stale', 3, ({ cache }) => cache['stale']),
      line('joined', 5, ({ cache }) => cache['collapsed']),
      line('miss', 1, ({ cache }) => cache['miss']),
      line('never cached', 7, ({ cache }) => cache['bypass'], [6, 3]),
    ],
  },
  { title: 'Upstream calls by reason', unit: 'per second', lines: callLines('rate') },
  { title: 'Latency of upstream calls by reason', unit: 'mean, ms', lines: callLines('ms') },
  {
    title: 'Slots to the upstream',
    unit: 'calls',
    lines: [
      line('in use', 1, ({ gauges }) => gauges['slots']),
      line('waiting for one', 4, ({ gauges }) => gauges['waiting']),
    ],
    note: ({ gauges }) => `of ${number(gauges['slotsLimit'] ?? 0)}`,
  },
  isStoreShared ? SHARED_STORE : OWN_STORE,
  {
    title: 'Event loop',
    unit: 'late by, ms',
    lines: [line('p99', 3, ({ loopMs }) => loopMs.p99), line('most', 4, ({ loopMs }) => loopMs.max, [6, 3])],
  },
  {
    title: 'Memory',
    unit: 'MB',
    lines: [
      line('resident', 1, ({ memory }) => memory.rss),
      line('heap', 2, ({ memory }) => memory.heap),
      line('external', 5, ({ memory }) => memory.external),
    ],
  },
];

const ticks = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

const SECONDS = 300;
const HEIGHT = 150;

/** @param {string} name */
const styled = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** All plots, over the same last seconds. */
export class Plots {
  /** @type {readonly { plot: Plot, box: HTMLElement, values: HTMLElement[], note: HTMLElement, chart?: uPlot }[]} */
  #plots = [];
  /** @type {{ readonly at: number, readonly figures: Figures }[]} */
  #history = [];
  /** @type {boolean | undefined} */
  #isStoreShared;

  /** @param {HTMLElement} grid */
  constructor(grid) {
    this.grid = grid;
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#drawAnew());
    new ResizeObserver(() => this.#resize()).observe(grid);
  }

  /** @param {number} at @param {Figures} figures @param {boolean} isStoreShared */
  add(at, figures, isStoreShared) {
    this.#history.push({ at: at / 1000, figures });
    while (this.#history.length > SECONDS) this.#history.shift();
    if (this.#isStoreShared === isStoreShared) return;
    this.#isStoreShared = isStoreShared;
    this.#plots = plotsWith(isStoreShared).map((plot) => this.#figureOf(plot));
    this.grid.replaceChildren(...this.#plots.map(({ box }) => box.closest('figure') ?? box));
    this.#drawAnew();
  }

  draw() {
    const last = this.#history.at(-1);
    if (!last) return;
    for (const { plot, chart, values, note } of this.#plots) {
      const data = this.#dataOf(plot);
      chart?.setData(/** @type {uPlot.AlignedData} */ (data));
      if (plot.note) setText(note, plot.note(last.figures));
      plot.lines.forEach(({ of }, at) => {
        const value = values[at];
        if (!value) return;
        const now = of(last.figures);
        setText(value, now === null || now === undefined ? '–' : number(now));
        if (plot.lines.length < CALLS.length || !value.parentElement) return;
        value.parentElement.hidden = at > 0 && !data[at + 1]?.some((one) => one);
      });
    }
  }

  /** @param {Plot} plot @returns {(number | null)[][]} */
  #dataOf({ lines }) {
    return [
      this.#history.map(({ at }) => at),
      ...lines.map(({ of }) => this.#history.map(({ figures }) => of(figures) ?? null)),
    ];
  }

  /** @param {Plot} plot */
  #figureOf(plot) {
    const figure = document.createElement('figure');
    const caption = element('figcaption');
    caption.append(element('strong', plot.title), ` ${plot.unit}`);
    const box = element('div', undefined, 'chart');
    box.ariaHidden = 'true';
    const list = element('ul', undefined, 'legend');
    const values = plot.lines.map(({ name, colour, dash }) => {
      const item = document.createElement('li');
      const value = element('span', '–', 'value');
      item.append(element('span', undefined, `swatch c${colour}${dash ? ' dashed' : ''}`), `${name} `, value);
      list.append(item);
      return value;
    });
    const note = element('p', '', 'note');
    figure.append(caption, box, list, note);
    return { plot, box, values, note };
  }

  /** Colours of a canvas do not follow the style sheet by themselves. */
  #drawAnew() {
    const axis = { stroke: styled('--quiet'), grid: { stroke: styled('--line'), width: 1 }, ticks: { show: false } };
    for (const one of this.#plots) {
      one.chart?.destroy();
      /** @type {uPlot.Options} */
      const options = {
        width: Math.max(200, one.box.clientWidth),
        height: HEIGHT,
        padding: [8, 28, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: true }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
        axes: [
          {
            ...axis,
            values: (_, at) => at.map((second) => new Date(second * 1000).toLocaleTimeString('en-GB')),
            space: 90,
            size: 28,
          },
          { ...axis, size: 52, values: (_, at) => at.map((value) => ticks.format(value)) },
        ],
        series: [
          {},
          ...one.plot.lines.map(({ name, colour, dash = [], isSparse = false }) => ({
            label: name,
            stroke: styled(`--c${colour}`),
            width: 2,
            dash,
            spanGaps: true,
            points: { show: isSparse, size: 5 },
          })),
        ],
      };
      one.chart = new uPlot(options, /** @type {uPlot.AlignedData} */ (this.#dataOf(one.plot)), one.box);
    }
  }

  #resize() {
    for (const { chart, box } of this.#plots) {
      const width = Math.max(200, box.clientWidth);
      if (chart && chart.width !== width) chart.setSize({ width, height: HEIGHT });
    }
  }
}
