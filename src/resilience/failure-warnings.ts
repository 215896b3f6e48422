import { GatewayError, type Reason } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { OncePerMinute } from '../core/once-per-minute.ts';

/** Warns that the upstream fails, once a minute for each reason. */
export class FailureWarnings {
  readonly #logger: Logger;
  readonly #warnings = new OncePerMinute();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `now`: in milliseconds. */
  warn(reason: Reason, status: number | undefined, error: unknown, now: number): void {
    if (!this.#warnings.isDue(reason, now)) return;
    const errno = errnoOf(error);
    const isStatus = reason === 'status' && status !== undefined;
    const more = { ...(errno !== undefined && { errno }), ...(isStatus && { upstream_status: status }) };
    this.#logger.warn({ reason, ...more }, 'the upstream fails');
  }
}

/** The system's or the library's code of what has failed, such as `ECONNREFUSED`. */
function errnoOf(error: unknown): string | undefined {
  const cause = error instanceof GatewayError ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return ERRNO.test(code) ? code : undefined;
}

const ERRNO = /^[A-Z][A-Z0-9_]{1,63}$/;
