import { destination, pino, stdTimeFunctions } from 'pino';
import type { Config } from '../../config.ts';
import type { Logger, RequestFields } from '../../core/logger.ts';

/** Characters of log lines that are written at once. */
const BLOCK = 8_192;
const FLUSH_MS = 100;

/**
 * JSON lines on standard output; callers pass allow-listed fields only. Those of requests are written in blocks, at the latest after
 * 100 ms; synchronously, as `console` does, since handing blocks to the thread pool costs more than writing them.
 */
export function pinoLogger(level: Config['logLevel']): Logger & { flush(): void } {
  const to = destination({ dest: 1, sync: true });
  const log = pino(
    { level, base: null, timestamp: stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } },
    to,
  );
  const hasRequests = log.isLevelEnabled('info');
  let lines = '';
  const writeLines = () => {
    if (lines !== '') to.write(lines);
    lines = '';
  };
  setInterval(writeLines, FLUSH_MS).unref();
  const afterLines = (write: () => void) => {
    writeLines();
    write();
  };
  return {
    info: (fields, message) => afterLines(() => log.info(fields, message)),
    warn: (fields, message) => afterLines(() => log.warn(fields, message)),
    error: (fields, message) => afterLines(() => log.error(fields, message)),
    request(fields) {
      if (hasRequests) lines += lineOf(fields);
      if (lines.length > BLOCK) writeLines();
    },
    flush: () => afterLines(() => log.flush()),
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
