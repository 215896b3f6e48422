import { type PrettyOptions, prettyFactory } from 'pino-pretty';

/** The fields of a request's line that say how it went; of other lines all are shown. */
const OF_REQUEST = ['status', 'method', 'route', 'duration_ms', 'cache', 'code', 'reason', 'failed', 'stale'];

const OTHERS = new Set(['level', 'time', 'msg', 'request_id', 'trace_id']);

const messageFormat: PrettyOptions['messageFormat'] = (log) => {
  const { msg } = log;
  const isRequest = msg === 'request';
  const names = isRequest ? OF_REQUEST : Object.keys(log).filter((name) => !OTHERS.has(name));
  const words = names.flatMap((name) => (log[name] === undefined ? [] : wordOf(name, log[name])));
  return isRequest ? words.join(' ') : [String(msg), ...words].join(' ');
};

function wordOf(name: string, value: unknown): string {
  if (name === 'duration_ms') return `${JSON.stringify(value)} ms`;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return name === 'failed' || name === 'stale' ? `${name}: ${text}` : text;
}

/** A JSON line as people read it: `12:30:05.123 INFO: 200 GET /bff/v1/inbox 12.3 ms miss`. */
export const readable = prettyFactory({
  colorize: true,
  translateTime: 'SYS:HH:MM:ss.l',
  hideObject: true,
  messageFormat,
});
