import { randomUUID } from 'node:crypto';
import { GatewayError } from '../../../core/errors.ts';
import type { Operation } from '../../../upstream/operation.ts';
import type { RawAnswer } from '../../../upstream/transport.ts';
import { undiciTransport } from '../transport.ts';
import type { Way } from '../way.ts';
import type { Configured } from './configuration.ts';
import { codeOf } from './findings.ts';

const ANSWER_MS = 3_000;

/** Asks the upstream as the gateway does, over the same connections. */
export interface Probe {
  readonly upstream: URL;
  readonly way: Way;
  readonly timeoutMs: number;
  /** Reads of an account that need nothing but its key. */
  readonly reads: readonly Operation[];
  /** The answer, and how long it took; or why there is none. */
  ask(read: Operation, key?: string): Promise<Asked | { readonly reason: string }>;
  close(): void;
}

export interface Asked extends RawAnswer {
  readonly ms: number;
}

export function openProbe(upstream: URL, way: Way, { config, table }: Pick<Configured, 'config' | 'table'>): Probe {
  const { transport, close } = undiciTransport(upstream, { ...config, upstreamMaxConnections: 4 }, way);
  return {
    upstream,
    way,
    timeoutMs: config.upstreamTimeoutMs,
    reads: table.operations.filter(({ method, idForm }) => method === 'GET' && idForm === undefined),
    async ask({ method, path }, key) {
      const headers = ['accept', 'application/json', 'user-agent', 'portico', 'x-request-id', randomUUID()];
      headers.push('via', '1.1 portico');
      if (key !== undefined) headers.push('authorization', `Token ${key}`);
      const signal = AbortSignal.timeout(ANSWER_MS);
      const { upstreamMaxBodyBytes: maxBodyBytes } = config;
      const startedAt = performance.now();
      try {
        const answer = await transport({ method, path, headers, signal, maxBodyBytes });
        return { ...answer, ms: performance.now() - startedAt };
      } catch (error) {
        return { reason: reasonOf(error) };
      }
    },
    close() {
      way.tls?.close();
      void close();
    },
  };
}

function reasonOf(error: unknown): string {
  if (error instanceof GatewayError) return error.particulars.reason ?? error.code;
  return error instanceof Error && error.name === 'TimeoutError' ? 'timeout' : codeOf(error);
}
