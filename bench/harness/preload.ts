/**
 * For `--import`, in front of a gateway that is measured: ends with the bench that started it, and tells how much memory
 * is in use once all garbage is gone.
 */
const MB = 1_048_576;

/** Set for the processes that this one starts: a worker of the gateway talks with its first process instead. */
const LOADED = 'PRELOADED';

if (process.env[LOADED] === undefined) {
  process.env[LOADED] = 'true';
  process.on('disconnect', () => process.exit(0));
  process.on('message', () => {
    for (let times = 0; times < 2; times++) globalThis.gc?.();
    const { heapUsed, rss, external } = process.memoryUsage();
    process.send?.({ heapMb: heapUsed / MB, rssMb: rss / MB, externalMb: external / MB });
  });
}
