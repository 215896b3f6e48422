/** Until `onStop` is called there is nothing to finish, so the process just exits. */
let stop: (signal: NodeJS.Signals) => void = () => process.exit(0);

// Set when this module is evaluated. It has to be imported first: until then a signal kills the process.
for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, (signal) => stop(signal));

/** From now on, this is what a signal does. */
export function onStop(finish: (signal: NodeJS.Signals) => void): void {
  stop = finish;
}
