import cluster from 'node:cluster';
import type { Recordings } from '../console/recorder.ts';
import type { ReadMetrics } from '../metrics/measured.ts';
import type { FromWorker, Report, Started, ToWorker } from './role.ts';

interface WorkerOptions {
  readonly started: Omit<Started, 'kind'>;
  readonly measure: ReadMetrics;
  readonly recordings: Recordings;
  readonly stop: (why: { readonly isReplaced: boolean }) => Promise<void>;
}

/** Does what the primary says. If that has gone this process ends, as on a signal. Resolves where the primary knows that it serves. */
export function serveFor({ started, measure, recordings, stop }: WorkerOptions): Promise<void> {
  const reports = new Reports(measure, recordings);
  const report = async (id: number, isWatched: boolean) =>
    tell({ kind: 'report', id, report: await reports.make(isWatched) });
  process.on('message', (message: ToWorker) => {
    void (message.kind === 'stop' ? stop(message) : report(message.id, message.isWatched));
  });
  cluster.worker?.on('disconnect', () => {
    if (cluster.worker) cluster.worker.exitedAfterDisconnect = true; // else Node ends the process at once
    void stop({ isReplaced: false });
  });
  return tell({ kind: 'started', ...started });
}

/** Tells the primary what was counted since it looked last, before this process ends. */
export const tellLast = async (measure: ReadMetrics): Promise<void> =>
  tell({ kind: 'last', report: { measured: await measure() } });

/** Resolves where it is on its way, or nobody is there to hear it. */
const tell = (message: FromWorker) =>
  new Promise<void>((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });

/** What this process knows, and of what is remembered only what is new. */
class Reports {
  readonly #measure: ReadMetrics;
  readonly #recordings: Recordings;
  #ended = 0;
  #unknown = 0;

  constructor(measure: ReadMetrics, recordings: Recordings) {
    this.#measure = measure;
    this.#recordings = recordings;
  }

  async make(isWatched: boolean): Promise<Report> {
    const recordings = this.#recordings;
    recordings.isWatched = isWatched;
    const measured = await this.#measure();
    if (!isWatched) return { measured };
    const { ended, unknownOutcomes } = recordings;
    const seen = {
      present: recordings.present(performance.timeOrigin + performance.now()),
      calls: recordings.takeCalls(),
      load: recordings.takeLoad(),
      ended: ended.since(this.#ended),
      unknown: unknownOutcomes.since(this.#unknown),
    };
    [this.#ended, this.#unknown] = [ended.added, unknownOutcomes.added];
    return { measured, seen };
  }
}
