import { assignment } from './assignment.ts';

/** Which begin the end. */
export const ENDING = ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const;

/** As a shell reports a process that SIGINT has ended. */
const INTERRUPTED = 130;

/** npm passes on a SIGINT that the terminal has sent to its children too: that is one. */
const SAME_MS = 150;

/** Until `onSignal` is called there is nothing to finish, so the process just exits. */
let finish: (signal: NodeJS.Signals) => void = () => process.exit(0);
let areTaken = false;
let interruptedAt: number | undefined;

/** From now on a signal does not kill the process, but a second SIGINT, for who does not want to wait. */
export function takeSignals(): void {
  if (areTaken) return;
  areTaken = true;
  for (const name of ENDING) process.on(name, take);
}

/** From now on, this is what a signal does. */
export function onSignal(run: (signal: NodeJS.Signals) => void): void {
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
