import { onTestFinished } from 'vitest';
import type { OperationId } from '../../src/upstream/operations/index.ts';
import { clockOfDeadlines, goodAnswer } from '../cache/world.ts';
import type { ManualClock } from '../support/clock.ts';
import { exampleInput } from '../support/examples.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { call, type CallOptions, type TextAnswer } from '../support/http.ts';
import { perCall, type ScriptedUpstream, startUpstream } from '../support/scripted-upstream.ts';
import { secret } from '../support/secrets.ts';
import { exposition, type Scraped } from './exposition.ts';

export const REQUESTS = 'portico_request_duration_seconds_count';
export const CALLS = 'portico_upstream_calls_total';
export const READS = 'portico_cache_reads_total';

export interface MetricsStage {
  readonly upstream: ScriptedUpstream;
  readonly gateway: TestGateway;
  readonly clock: ManualClock;
  readonly token: string;
  /** The operation's example request. */
  readonly ask: (id: OperationId, options?: Partial<CallOptions>) => Promise<TextAnswer>;
  readonly call: (options: CallOptions) => Promise<TextAnswer>;
  /** Asks the admin listener. */
  readonly admin: (options: CallOptions) => Promise<TextAnswer>;
  readonly scrape: () => Promise<Scraped>;
}

/** A gateway with its admin listener, before an upstream that answers whatever it is asked; time stands still. */
export async function openMetrics(
  env: Readonly<Record<string, string>> = {},
  atEnd: (close: () => Promise<void>) => void = onTestFinished,
): Promise<MetricsStage> {
  const upstream = await startUpstream();
  const clock = clockOfDeadlines();
  const gateway = await startGateway(upstream.url, { env, clock, admin: true });
  upstream.on(
    () => true,
    perCall((to) => goodAnswer(to, 1)),
  );
  const token = secret();
  atEnd(async () => {
    await upstream.close();
    await gateway.close();
  });
  const admin = (options: CallOptions) => call(gateway.adminUrl ?? '', options);
  return {
    upstream,
    gateway,
    clock,
    token,
    ask(id, options = {}) {
      const { method, path, body } = exampleInput(id);
      return call(gateway.url, { method, path, token, ...(body !== undefined && { body }), ...options });
    },
    call: (options) => call(gateway.url, options),
    admin,
    scrape: async () => exposition((await admin({ path: '/metrics' })).text),
  };
}
