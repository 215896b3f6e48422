import type { Config } from '../config.ts';
import type { Logger } from '../core/logger.ts';
import type { Metrics } from '../core/metrics.ts';
import type { Recorder } from '../core/recorder.ts';
import type { RequestTools } from '../core/request.ts';
import type { Digest } from '../core/runtime.ts';
import type { Store } from '../store/store.ts';
import type { Hooks } from '../upstream/hooks.ts';
import type { Table } from '../upstream/table.ts';
import type { Transport } from '../upstream/transport.ts';
import type { Overview } from './overview.ts';

/** What a runtime gives for requests, reads and writes. */
export interface GatewayDeps extends RequestTools {
  readonly config: Config;
  /** The upstream's operations. */
  readonly table: Table;
  readonly overviews: readonly Overview[];
  readonly hooks?: Hooks | undefined;
  /** The upstream's `{base_url}`: configured, or the sandbox's. */
  readonly upstream: URL;
  readonly transport: Transport;
  readonly store: Store;
  /** A number from 0 to 1. Spreads what many instances would do at once. */
  readonly random: () => number;
  readonly digest: Digest;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Absent where no operator can look at it. */
  readonly recorder?: Recorder | undefined;
  /** Aborted when the process is to end. */
  readonly ending?: AbortSignal | undefined;
  /** Upstream calls under way at once; undefined if the platform limits them. */
  readonly slots: number | undefined;
}
