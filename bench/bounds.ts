const VISITORS = 10_000;
const BYTES_OF_ACCOUNT = 1_024;

/** What the gauges of these names never show more of. */
export const boundsOf = (cacheMaxBytes: number) => ({
  cache_bytes: cacheMaxBytes,
  accounts: cacheMaxBytes / 8 / BYTES_OF_ACCOUNT + VISITORS,
  limit_windows: 60_000, // and holds
  idempotency_pinned_records: 33_554_432 / 500, // bytes, of the smallest
});
