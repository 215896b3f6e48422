import type { Config } from '../../config.ts';
import type { LogFields, Logger } from '../../core/logger.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** The same JSON lines as on Node, through the platform's log. */
export function consoleLogger(level: Config['logLevel']): Logger {
  const { log, warn, error } = console;
  const write = (line: (text: string) => void, name: string) => (fields: LogFields, message: string) => {
    if (LEVELS.indexOf(name) < LEVELS.indexOf(level)) return;
    line(JSON.stringify({ level: name, time: new Date().toISOString(), ...fields, msg: message }));
  };
  const info = write(log, 'info');
  return {
    info,
    warn: write(warn, 'warn'),
    error: write(error, 'error'),
    request: (fields) => info(fields, 'request'),
  };
}
