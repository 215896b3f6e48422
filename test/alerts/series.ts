/** A series by its name and labels, and its values a minute apart, as promtool writes them: `0+60x30` begins with 0 and grows 30 times. */
export type Series = Readonly<Record<string, string>>;

/** A fleet of two, a day long, in which nothing is wrong, though something is going on. */
export const goodRun = (minutes: number): Series => ({
  ...ofBoth((on) => ({
    [`portico_requests_total{operation="getA",status="2xx",${on}}`]: `0+600x${minutes}`,
    [`portico_requests_total{operation="getA",status="4xx",${on}}`]: `0+60x${minutes}`,
    [`portico_requests_total{operation="getA",status="5xx",${on}}`]: `0x${minutes}`,
    [`portico_requests_total{operation="(none)",status="5xx",${on}}`]: `0+60x${minutes}`,
    ...latencies(on, { good: `0+660x${minutes}`, all: `0+660x${minutes}` }),
    [`portico_circuit_open{${on}}`]: `0x${minutes}`,
    [`portico_upstream_calls_total{operation="getA",outcome="good",reason="",${on}}`]: `0+300x${minutes}`,
    [`portico_upstream_calls_total{operation="getA",outcome="failed",reason="status",${on}}`]: `0+3x${minutes}`,
    [`portico_upstream_calls_total{operation="getA",outcome="failed",reason="tls",${on}}`]: `0x${minutes}`,
    [`portico_upstream_calls_total{operation="getA",outcome="failed",reason="dns",${on}}`]: `0x${minutes}`,
    [`portico_store_usable{${on}}`]: `1x${minutes}`,
    [`portico_store_up{${on}}`]: `1x${minutes}`,
    [`portico_store_waits_given_up_total{${on}}`]: `0x${minutes}`,
    [`portico_idempotency_total{outcome="answered",${on}}`]: `0+20x${minutes}`,
    [`portico_idempotency_total{outcome="replayed",${on}}`]: `0+2x${minutes}`,
    [`portico_idempotency_total{outcome="unknown",${on}}`]: `0x${minutes}`,
    [`portico_idempotency_total{outcome="outcome_unknown",${on}}`]: `0x${minutes}`,
    [`portico_drift_total{operation="getA",${on}}`]: `0x${minutes}`,
    ...Object.fromEntries(Object.entries(USED).map(([name, value]) => [`${name}{${on}}`, `${value}x${minutes}`])),
  })),
});

export const on = (instance: string) => `instance="${instance}",job="portico"`;

export const ofBoth = (of: (on: string) => Series): Series => ({ ...of(on('a')), ...of(on('b')) });

/** Of requests: those within 100 ms, and all, of which the others took two seconds. */
export const latencies = (labels: string, { good, all }: { readonly good: string; readonly all: string }): Series =>
  Object.fromEntries(
    [['0.1', good] as const, ['1', good] as const, ['2.5', all] as const, ['+Inf', all] as const].map(
      ([le, values]) => [
        `portico_request_duration_seconds_bucket{operation="getA",status="2xx",cache="miss",le="${le}",${labels}}`,
        values,
      ],
    ),
  );

/** What is in use, and how much there may be. */
const USED = {
  portico_requests_under_way: 40,
  portico_requests_limit: 2000,
  portico_connections: 90,
  portico_connections_limit: 4000,
  portico_upstream_calls_under_way: 10,
  portico_upstream_calls_limit: 256,
  portico_idempotency_bytes: 0, // it is in the store
  portico_idempotency_bytes_limit: 0,
  portico_cache_bytes: 100, // as it is meant to be
  portico_cache_bytes_limit: 100,
};
