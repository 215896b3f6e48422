/** What the gateway tells once a second. Instants in milliseconds since 1970, other times in milliseconds, rates by second. */
export interface ConsoleEvent {
  readonly at: number;
  readonly about: {
    readonly version: string;
    readonly node: string;
    readonly pid: number;
    /** When the process began. */
    readonly since: number;
    readonly slowMs: number;
    readonly isStoreShared: boolean;
  };
  /** Null until a second has passed. */
  readonly figures: Figures | null;
  readonly underWay: readonly Asked[];
  readonly underWayCount: number;
  readonly accounts: readonly { readonly account: string; readonly requests: number; readonly bad: number }[];
  readonly circuit: { readonly since: number; readonly probeAt: number } | null;
  /** Whether all that is remembered is in it, or only what is new. */
  readonly isFirst: boolean;
  readonly ended: readonly Asked[];
  readonly unknown: readonly UnknownWrite[];
}

type Rates = Readonly<Record<string, number>>;
type Quantiles = { readonly p50: number; readonly p95: number; readonly p99: number } | null;

export interface Figures {
  readonly status: Rates;
  readonly requestMs: Quantiles;
  readonly cache: Rates;
  readonly calls: Readonly<Record<string, { readonly rate: number; readonly ms: number }>>;
  readonly storeMs: Quantiles;
  readonly storeFailures: number;
  readonly gauges: Readonly<Record<string, number | null>>;
  readonly loopMs: { readonly p99: number; readonly max: number };
  /** In MB. */
  readonly memory: { readonly rss: number; readonly heap: number; readonly external: number };
}

/** A request. */
export interface Asked {
  readonly id: string;
  readonly at: number;
  readonly ms: number;
  /** Absent while it is under way. */
  readonly status?: number;
  readonly method: string;
  readonly operation: string;
  readonly account?: string;
  readonly cache?: string;
  readonly code?: string;
  readonly reason?: string;
  readonly fresh?: readonly string[];
  readonly failed?: readonly string[];
  readonly stale?: readonly string[];
  readonly legs: readonly Leg[];
  readonly phases: readonly Phase[];
  /** How many phases are left out. */
  readonly more: number;
}

export interface Leg {
  readonly leg: string;
  readonly ms: number;
  /** By phase. */
  readonly sums: Readonly<Record<string, number>>;
  readonly reason?: string;
}

export interface Phase {
  readonly phase: string;
  readonly leg?: string;
  /** From the begin of the request. */
  readonly at: number;
  readonly ms: number;
  readonly open?: boolean;
  readonly outcome?: string;
  /** That the upstream answered with. */
  readonly status?: number;
  readonly reason?: string;
  readonly joined?: string;
  readonly fact?: string;
}

export interface UnknownWrite {
  readonly requestId: string;
  readonly operation: string;
  readonly account?: string;
  readonly hasKey: boolean;
  readonly at: number;
}
