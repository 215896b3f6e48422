import type { Load } from '../console/load.ts';
import { keptTexts, MOST_ACCOUNTS, MOST_UNDER_WAY, type Present, type Shown, type Times } from '../console/recorder.ts';
import { added, lastCounts, type Measured, measureProcess, type ReadMetrics } from '../metrics/measured.ts';
import type { WorkerProcess } from './process.ts';
import type { Seen } from './role.ts';

/** For so long a worker that is busy is waited for. */
const LOOK_MS = 500;

/** What all workers know of themselves, and what was counted by those that are gone. */
export class Gathered implements Shown {
  readonly #workers: () => Iterable<WorkerProcess>;
  readonly #own: ReadMetrics;
  /** Of those that are gone: else each death would look like a reset. */
  #gone = Promise.resolve<Measured>([]);
  #seen: readonly Seen[] = [];
  #looking: Promise<void> | undefined;
  readonly ended;
  readonly unknownOutcomes;
  #isWatched = false;

  /** `own`: what the primary measures beside its process. */
  constructor(workers: () => Iterable<WorkerProcess>, own: ReadMetrics) {
    this.#workers = workers;
    this.#own = own;
    ({ ended: this.ended, unknownOutcomes: this.unknownOutcomes } = keptTexts());
  }

  get isWatched(): boolean {
    return this.#isWatched;
  }

  set isWatched(is: boolean) {
    this.#isWatched = is;
    if (!is) void (this.#looking ??= this.#look()); // they stop to record
  }

  /** One is gone: what it had counted is kept. */
  forget({ last }: WorkerProcess): void {
    if (last) this.#gone = this.#gone.then((gone) => added([gone, lastCounts(last.measured)]).measured());
  }

  scrape = async () => (await this.#added()).scraped();

  read = async () => (await this.#added()).measured();

  takeCalls(): ReadonlyMap<string, Readonly<Times>> {
    const sums = new Map<string, Times>();
    for (const [name, { count, ms }] of this.#seen.flatMap(({ calls }) => [...calls])) {
      const sum = sums.get(name) ?? { count: 0, ms: 0 };
      sums.set(name, { count: sum.count + count, ms: sum.ms + ms });
    }
    return sums;
  }

  /** The latest of the loops, and the memory of all. */
  takeLoad(): Load {
    const loads = this.#seen.map(({ load }) => load);
    const most = (of: keyof Load['loopMs']) => Math.max(0, ...loads.map(({ loopMs }) => loopMs[of]));
    const sum = (of: keyof Load['memory']) => loads.reduce((all, { memory }) => all + memory[of], 0);
    return {
      loopMs: { p99: most('p99'), max: most('max') },
      memory: { rss: sum('rss'), heap: sum('heap'), external: sum('external') },
    };
  }

  present(): Present {
    const all = this.#seen.map(({ present }) => present);
    const underWay = all.flatMap((one) => one.underWay).toSorted((a, b) => a.at - b.at);
    return {
      underWay: underWay.slice(0, MOST_UNDER_WAY),
      underWayCount: all.reduce((sum, { underWayCount }) => sum + underWayCount, 0),
      accounts: accountsIn(all),
      circuit: all.find(({ circuit }) => circuit)?.circuit ?? null,
    };
  }

  async #added() {
    await (this.#looking ??= this.#look());
    // Of a worker that does not answer in time, what it said last. One that has gone meanwhile is among those that are gone.
    const measured = [...this.#workers()].flatMap(({ last }) => (last ? [last.measured] : []));
    const [gone, ofPrimary, own] = await Promise.all([this.#gone, measureProcess(), this.#own()]);
    return added([gone, ...measured, ofPrimary, own]);
  }

  async #look(): Promise<void> {
    await Promise.all(Array.from(this.#workers(), (worker) => worker.look(this.#isWatched, LOOK_MS)));
    this.#looking = undefined;
    this.#seen = [...this.#workers()].flatMap((worker) => worker.takeSeen());
    for (const { ended, unknown } of this.#seen) {
      for (const text of ended) this.ended.add(text);
      for (const text of unknown) this.unknownOutcomes.add(text);
    }
  }
}

function accountsIn(all: readonly Present[]): Present['accounts'] {
  const byAccount = Map.groupBy(
    all.flatMap(({ accounts }) => accounts),
    ({ account }) => account,
  );
  const sums = Array.from(byAccount, ([account, parts]) => ({
    account,
    requests: parts.reduce((sum, { requests }) => sum + requests, 0),
    bad: parts.reduce((sum, { bad }) => sum + bad, 0),
  }));
  return sums.toSorted((a, b) => b.requests - a.requests).slice(0, MOST_ACCOUNTS);
}
