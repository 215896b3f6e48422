/** Until `onStop` is called there is nothing to finish, so the process just exits. */
let stop: (signal: NodeJS.Signals) => void = () => process.exit(0);
let areTaken = false;

/** From now on a signal does not kill the process. */
export function takeSignals(): void {
  if (areTaken) return;
  areTaken = true;
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, (signal) => stop(signal));
}

/** From now on, this is what a signal does. */
export function onStop(finish: (signal: NodeJS.Signals) => void): void {
  takeSignals();
  stop = finish;
}
