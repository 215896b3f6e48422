import { GatewayError } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { OncePerMinute } from '../core/once-per-minute.ts';
import type { Gate, Settled } from './gates.ts';

/** Warns that the upstream fails, once a minute for each reason. */
export function watchReasons(logger: Logger): Gate {
  const warnings = new OncePerMinute();
  const settled: Settled = ({ phase }, { error, now }) => {
    const reason = phase?.reason;
    if (reason === undefined || !warnings.isDue(reason, now)) return;
    const errno = errnoOf(error);
    const status = reason === 'status' ? phase?.status : undefined;
    const more = { ...(errno !== undefined && { errno }), ...(status !== undefined && { upstream_status: status }) };
    logger.warn({ reason, ...more }, 'the upstream fails');
  };
  return () => settled;
}

/** The system's or the library's code of what has failed, such as `ECONNREFUSED`. */
function errnoOf(error: unknown): string | undefined {
  const cause = error instanceof GatewayError ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return ERRNO.test(code) ? code : undefined;
}

const ERRNO = /^[A-Z][A-Z0-9_]{1,63}$/;
