import type { PhaseName } from './timeline.ts';

/** Where log lines go: pino on Node, `console` on Workers. Only these fields are ever logged. */
export interface Logger {
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** Writes the one line of a request; with a status of 500 or above at the level of an error. */
  request(fields: RequestFields): void;
}

interface RequestFields {
  readonly request_id: string;
  readonly trace_id: string;
  /** Undefined if the head could not be read. */
  readonly method?: string | undefined;
  /** The template, never the path. */
  readonly route: string;
  readonly status: number;
  readonly duration_ms: number;
  readonly operation?: string | undefined;
  /** The call of a tool, whose name is the operation's. */
  readonly via?: 'mcp' | undefined;
  /** Keyed hash of the credential. */
  readonly account?: string | undefined;
  readonly cache?: string | undefined;
  readonly upstream_calls: number;
  readonly upstream_ms: number;
  /** Keyed hash of the client's address. */
  readonly client?: string | undefined;
  readonly code?: string | undefined;
  /** Why the upstream failed. In lines that are not about a request: an error code of the system or of the store. */
  readonly reason?: string | undefined;
  /** For a write that may have happened. */
  readonly outcome?: 'unknown' | undefined;
  /** Names of sections. */
  readonly failed?: readonly string[] | undefined;
  readonly stale?: readonly string[] | undefined;
  /** For a slow request. */
  readonly legs?: readonly LegFields[] | undefined;
}

/** Where the time of a leg went, in milliseconds. `ms`: from the beginning of the request to the end of the leg. */
interface LegFields {
  readonly leg: string;
  readonly ms: number;
  readonly phases: Readonly<Partial<Record<PhaseName, number>>>;
  readonly reason?: string | undefined;
}

/** Durations in milliseconds. No credential, card, e-mail, query value or body ever (`contract.md` section 9). */
export interface LogFields extends Partial<RequestFields> {
  /** Path of a field that did not fit its schema, never its value. */
  readonly field?: string;
  readonly count?: number;
  /** Name and stack of a fault of ours, without its message, which may quote input. */
  readonly fault?: string;
  readonly signal?: string;
  /** Host of the upstream. */
  readonly host?: string;
  /** The system's code of a failure. */
  readonly errno?: string;
  readonly upstream_status?: number;
  readonly url?: string;
}

/** The request in which a fault occurred. */
interface Faulted {
  readonly requestId: string;
  readonly trace: { readonly traceId: string };
}

/** A bug, of ours or of a hook. Clients get no details; the log gets the stack. */
export function logFault(
  logger: Logger,
  { requestId, trace }: Faulted,
  thrown: unknown,
  what = 'internal error',
): void {
  logger.error({ request_id: requestId, trace_id: trace.traceId, fault: faultOf(thrown) }, what);
}

/** What a hook throws may be anything, also an error whose members are no text or throw themselves. */
function faultOf(thrown: unknown): string {
  try {
    if (!(thrown instanceof Error)) return typeof thrown;
    return `${/^\w{1,40}$/.exec(thrown.name)?.[0] ?? 'Error'} ${framesOf(thrown)}`;
  } catch {
    return 'Error';
  }
}

/** Message for a hook that has failed. `name`: its option. */
export const hookFailed = (name: string) => `the hook \`${name}\` has failed`;

/** The stack without the message, which may quote input. */
function framesOf({ message, stack = '' }: Error): string {
  const at = stack.indexOf(message);
  return stack
    .slice(at < 0 ? 0 : at + message.length)
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 5)
    .join('\n');
}
