import { role } from './workers/role.ts';

/** Which begin the end, and that they ask for a new configuration where there are workers to be replaced. */
export const ENDING = ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP'] as const;

/** As a shell reports a process that SIGINT has ended. */
const INTERRUPTED = 130;

/** npm passes on a SIGINT that the terminal has sent to its children too: that is one. */
const SAME_MS = 150;

/** Until `onSignal` is called there is nothing to finish, so the process just exits. */
let finish: (signal: NodeJS.Signals) => void = () => process.exit(0);
let areTaken = false;
let interruptedAt: number | undefined;
let leaveAtOnce: () => void = () => undefined;

/** From now on a signal does not kill the process, but a second SIGINT, for who does not want to wait. */
export function takeSignals(): void {
  if (areTaken) return;
  areTaken = true;
  for (const name of ENDING) process.on(name, take);
}

/** From now on, this is what a signal does. `atOnce`: what is to be done before a second SIGINT ends the process. */
export function onSignal(run: (signal: NodeJS.Signals) => void, atOnce = leaveAtOnce): void {
  takeSignals();
  finish = run;
  leaveAtOnce = atOnce;
}

function take(signal: NodeJS.Signals): void {
  if (signal === 'SIGHUP' && role) return; // it is for the primary
  const now = performance.now();
  if (signal === 'SIGINT') {
    if (interruptedAt !== undefined && now - interruptedAt >= SAME_MS) {
      leaveAtOnce();
      process.exit(INTERRUPTED);
    }
    interruptedAt ??= now;
  }
  finish(signal);
}
