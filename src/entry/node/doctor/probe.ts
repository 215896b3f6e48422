import { randomUUID } from 'node:crypto';
import { GatewayError } from '../../../core/errors.ts';
import type { Operation } from '../../../upstream/operation.ts';
import type { RawAnswer } from '../../../upstream/transport.ts';
import { undiciTransport } from '../transport.ts';
import { ProxyError, type Way } from '../way.ts';
import type { Configured } from './configuration.ts';
import { codeOf } from './findings.ts';
import { proxyIn } from './way.ts';

const ANSWER_MS = 3_000;

/** Asks the upstream as the gateway does, over the same connections. */
export interface Probe {
  readonly upstream: URL;
  readonly way: Way;
  /** By which it is reached, if any. */
  readonly proxy: URL | undefined;
  readonly timeoutMs: number;
  /** Reads of an account that need nothing but its key. */
  readonly reads: readonly Operation[];
  /** The answer, and how long it took; or why there is none. */
  ask(read: Operation, key?: string): Promise<Asked | Failure>;
  close(): void;
}

export interface Failure {
  readonly reason: string;
  /** The code of a failure of the proxy, or its status. */
  readonly ofProxy?: string | undefined;
}

export interface Asked extends RawAnswer {
  readonly ms: number;
}

export function openProbe(upstream: URL, way: Way, { config, table }: Pick<Configured, 'config' | 'table'>): Probe {
  const { transport, close } = undiciTransport(upstream, { ...config, upstreamMaxConnections: 4 }, way);
  return {
    upstream,
    way,
    proxy: proxyIn(way, upstream),
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
        return failureOf(error);
      }
    },
    close() {
      way.tls?.close();
      void close();
    },
  };
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof GatewayError))
    return { reason: error instanceof Error && error.name === 'TimeoutError' ? 'timeout' : codeOf(error) };
  const { cause, particulars, code } = error;
  const ofProxy = cause instanceof ProxyError ? cause.code.replace('PROXY_', '') : undefined;
  return { reason: particulars.reason ?? code, ofProxy };
}
