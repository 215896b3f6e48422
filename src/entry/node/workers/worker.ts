import cluster from 'node:cluster';
import type { ReadMetrics } from '../metrics/measured.ts';
import type { FromWorker, Started, ToWorker } from './role.ts';

interface WorkerOptions {
  readonly started: Omit<Started, 'kind'>;
  readonly measure: ReadMetrics;
  readonly stop: (why: { readonly isReplaced: boolean }) => Promise<void>;
}

/** Does what the primary says. If that has gone this process ends, as on a signal. Resolves where the primary knows that it serves. */
export function serveFor({ started, measure, stop }: WorkerOptions): Promise<void> {
  const report = async (id: number) => tell({ kind: 'report', id, report: { measured: await measure() } });
  process.on('message', (message: ToWorker) => {
    void (message.kind === 'stop' ? stop(message) : report(message.id));
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
