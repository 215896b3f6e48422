import { destination, pino, stdTimeFunctions } from 'pino';
import type { Config } from '../../config.ts';
import type { Logger } from '../../core/logger.ts';

/**
 * JSON lines on standard output; callers pass allow-listed fields only. Written in blocks, at the latest after 100 ms;
 * synchronously, as `console` does, since handing blocks to the thread pool costs more than writing them.
 */
export function pinoLogger(level: Config['logLevel']): Logger & { flush(): void } {
  const log = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination({ dest: 1, sync: true, minLength: 4096, periodicFlush: 100 }),
  );
  return {
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
    flush: () => log.flush(),
  };
}
