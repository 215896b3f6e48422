import type { ChildProcess } from 'node:child_process';

/** What `cluster` says to a worker for a connection, and hears when that has taken it. */
interface Internal {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

/**
 * `cluster` forgets a connection that it was handing to a worker when that ended: it stays open, and its client waits for
 * ever. So the worker's answer is given in its place: it did not take the connection, and the next one gets it; or it did,
 * where `hasOther` says that there is none, and it is closed. A worker answers before it reads, so nothing is read twice.
 */
export function handOn(worker: ChildProcess, hasOther: () => boolean): void {
  let untaken: number | undefined; // one at a time
  const send = worker.send.bind(worker) as (...said: unknown[]) => boolean;
  worker.send = (message: Internal, ...others: unknown[]) => {
    if (message.act === 'newconn') untaken = message.seq;
    return send(message, ...others);
  };
  worker.on('internalMessage', ({ ack }: Internal) => {
    if (ack === untaken) untaken = undefined;
  });
  worker.once('close', () => {
    if (untaken === undefined) return;
    worker.emit('disconnect'); // which Node leaves out here, so that `cluster` would hand it more
    worker.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: untaken, accepted: !hasOther() });
  });
}
