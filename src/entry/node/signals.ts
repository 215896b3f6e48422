/** Told to stop before there is anything to finish, the process simply leaves. */
let stop: (signal: NodeJS.Signals) => void = () => process.exit(0);

// Set when this module is evaluated, which has to be before all others: the default is to die of the signal.
for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, (signal) => stop(signal));

/** From now on, this is what a signal does. */
export function onStop(finish: (signal: NodeJS.Signals) => void): void {
  stop = finish;
}
