const LEAST_ACCOUNTS = 50_000;
const BYTES_OF_ACCOUNT = 1_024;

/** What the gauges of these names never show more of. */
export const boundsOf = (cacheMaxBytes: number) => {
  const accounts = 2 * Math.max(LEAST_ACCOUNTS, cacheMaxBytes / 8 / BYTES_OF_ACCOUNT); // accepted ones, and others
  return {
    cache_bytes: cacheMaxBytes,
    accounts,
    limit_windows: accounts,
    idempotency_records: 100_663_296 / 500, // bytes, of the smallest
  };
};
