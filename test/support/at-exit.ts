// A fork of vitest is ended by a signal, after which no `exit` would come.
process.once('SIGTERM', () => process.exit(143));

/** Kills what a test has started when the process of the tests ends first. Returns what makes that needless. */
export function killAtExit(kill: () => void): () => void {
  process.once('exit', kill);
  return () => void process.off('exit', kill);
}
