import { pino, stdTimeFunctions } from 'pino';
import type { Config } from '../../config.ts';
import type { Logger, RequestFields } from '../../core/logger.ts';
import { Lines } from './lines.ts';

export interface LoggerOfProcess extends Logger {
  /** How many lines could not be written. */
  readonly dropped: () => number;
  /** Writes what is left, if that is possible soon. */
  readonly end: () => Promise<void>;
}

/** JSON lines on standard output; callers pass allow-listed fields only. Those of requests wait for others, to be written together. */
export function pinoLogger(level: Config['logLevel']): LoggerOfProcess {
  const lines = new Lines((count) => log.warn({ count }, 'log lines were dropped'));
  const atOnce = (line: string) => {
    lines.add(line);
    lines.flush();
  };
  const log = pino(
    { level, base: null, timestamp: stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } },
    { write: atOnce },
  );
  const hasRequests = log.isLevelEnabled('info');
  return {
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
    request(fields) {
      if (hasRequests) lines.add(lineOf(fields));
    },
    dropped: () => lines.dropped,
    end: () => lines.end(),
  };
}

/** The line that pino would write. pino's serializer takes as long as all the rest of an answer from the cache. */
function lineOf({ request_id, trace_id, method, route, status, duration_ms, ...rest }: RequestFields): string {
  const { operation, account, auth, cache, upstream_calls, upstream_ms, code } = rest;
  let line = `{"level":"info","time":"${isoTime()}","request_id":"${request_id}","trace_id":"${trace_id}"`;
  if (method !== '') line += `,"method":"${method}"`;
  line += `,"route":"${route}","status":${status},"duration_ms":${duration_ms}`;
  if (operation !== undefined) line += `,"operation":"${operation}"`;
  if (account !== undefined) line += `,"account":"${account}"`;
  if (auth !== undefined) line += `,"auth":"${auth}"`;
  if (cache !== undefined) line += `,"cache":"${cache}"`;
  line += `,"upstream_calls":${upstream_calls},"upstream_ms":${upstream_ms}`;
  if (code !== undefined) line += `,"code":"${code}"`;
  return `${line},"msg":"request"}\n`;
}

let lastMs = 0;
let lastTime = '';

/** Cached, since many lines have the same millisecond. */
function isoTime(): string {
  const now = Date.now();
  if (now !== lastMs) [lastMs, lastTime] = [now, new Date(now).toISOString()];
  return lastTime;
}
