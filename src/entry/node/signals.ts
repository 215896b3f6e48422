import { assignment } from './assignment.ts';

/** The signals that begin the end. */
export const ENDING = ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const;

/** The status that a shell reports for a process that SIGINT has ended. */
const INTERRUPTED = 130;

/** npm passes on a SIGINT that the terminal has sent to its children too: within this time the two are one. */
const SAME_MS = 150;

/** Until `onSignal` is called there is nothing to finish, so the process just exits. */
let finish: (signal: NodeJS.Signals) => unknown = () => process.exit(0);
let interruptedAt: number | undefined;

/** From now on a signal does not kill the process, but a second SIGINT does. */
export function takeSignals(): void {
  for (const name of ENDING) if (!process.listeners(name).includes(take)) process.on(name, take);
}

/** From now on, this is what a signal does. */
export function onSignal(run: (signal: NodeJS.Signals) => unknown): void {
  takeSignals();
  finish = run;
}

function take(signal: NodeJS.Signals): void {
  if (assignment && signal !== 'SIGTERM') return; // a terminal sends these to all processes: the first tells the others
  const now = performance.now();
  if (signal === 'SIGINT') {
    if (interruptedAt !== undefined && now - interruptedAt >= SAME_MS) process.exit(INTERRUPTED);
    interruptedAt ??= now;
  }
  finish(signal);
}
