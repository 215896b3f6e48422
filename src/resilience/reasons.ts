import { GatewayError, type Reason } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { Sparing } from '../core/sparing.ts';
import type { Gate, Settled } from './gates.ts';

/** What each reason says to the operator, and what to look at. */
const WORDS: Readonly<Record<Reason, string>> = {
  dns: 'its name has no address; see UPSTREAM_BASE_URL and the name server',
  refused: 'it refuses connections; see its port in UPSTREAM_BASE_URL, and whether it runs',
  tls: 'TLS fails; see whether it speaks TLS at this port, and the scheme of UPSTREAM_BASE_URL',
  reset: 'the connection goes away before its whole answer; see the scheme of UPSTREAM_BASE_URL, and who closes it',
  unreachable: 'there is no way to it; see routes and firewalls',
  timeout: 'no answer in time; see UPSTREAM_TIMEOUT_MS',
  status: 'it answers with an error of its own',
  bad_body: 'what it answers cannot be read',
  too_large: 'it answers with more than UPSTREAM_MAX_BODY_BYTES',
};

const REDIRECTS = 'it redirects, which is not followed; see scheme, host and path of UPSTREAM_BASE_URL';
const LOOPS = 'it leads back to this gateway; see UPSTREAM_BASE_URL';
const NOT_TRUSTED = 'its certificate is not trusted; see UPSTREAM_CA_FILE';
/** OpenSSL's names of what is wrong with a certificate, as Node has them. */
const OF_CERTIFICATE = /^(CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_|ERR_TLS_CERT_)/;

/** Warns when the upstream begins to fail for a reason, or for another one. `host`: the upstream's. */
export function watchReasons(logger: Logger, host: string): Gate {
  /** The last that was told; none while the upstream answers. */
  let told = '';
  const sparing = new Sparing(); // they may alternate
  const settled: Settled = (attempt, { answer, error, now }) => {
    if (answer) told = '';
    const reason = attempt.phase?.reason;
    if (reason === undefined) return;
    const errno = errnoOf(error);
    const status = reason === 'status' ? attempt.phase?.status : undefined;
    const key = `${reason} ${errno} ${status}`;
    if (key === told || !sparing.isDue(key, now)) return;
    told = key;
    const fields = { reason, host, ...(errno && { errno }), ...(status !== undefined && { upstream_status: status }) };
    logger.warn(fields, `the upstream fails: ${wordsFor(error, reason, errno, status)}`);
  };
  return () => settled;
}

function wordsFor(error: unknown, reason: Reason, errno: string, status = 0): string {
  if (reason === 'tls' && OF_CERTIFICATE.test(errno)) return NOT_TRUSTED;
  if (error instanceof GatewayError && error.code === 'loop_detected') return LOOPS;
  return status >= 300 && status < 400 ? REDIRECTS : WORDS[reason];
}

/** The system's or the library's code of what has failed, such as `ECONNREFUSED`; empty if there is none. */
function errnoOf(error: unknown): string {
  const cause = error instanceof GatewayError ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return ERRNO.test(code) ? code : '';
}

const ERRNO = /^[A-Z][A-Z0-9_]{1,63}$/;
