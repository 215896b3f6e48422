import { GatewayError, type Reason } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import { Sparing } from '../core/sparing.ts';
import type { Gate, Settled } from './gates.ts';

/** What each reason says to the operator, and what to look at. */
const WORDS: Readonly<Record<Reason, string>> = {
  dns: 'its name has no address; see UPSTREAM_BASE_URL and the name server',
  refused: 'it refuses connections; see its port in UPSTREAM_BASE_URL, and whether it runs',
  tls: 'TLS fails; see whether it speaks TLS at this port, and the scheme of UPSTREAM_BASE_URL',
  reset: 'the connection goes away before its whole answer',
  unreachable: 'there is no way to it; see routes and firewalls',
  timeout: 'no answer in time; see UPSTREAM_TIMEOUT_MS',
  status: 'it answers with an error of its own',
  bad_body: 'what it answers cannot be read',
  too_large: 'it answers with more than UPSTREAM_MAX_BODY_BYTES',
};

const NOT_TRUSTED = 'its certificate is not trusted; see NODE_EXTRA_CA_CERTS';
/** OpenSSL's names of what is wrong with a certificate, as Node has them. */
const OF_CERTIFICATE = /^(CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/;

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
    const key = `${reason} ${errno}`;
    if (key === told || !sparing.isDue(key, now)) return;
    told = key;
    const words = reason === 'tls' && OF_CERTIFICATE.test(errno) ? NOT_TRUSTED : WORDS[reason];
    logger.warn({ reason, host, ...(errno && { errno }) }, `the upstream fails: ${words}`);
  };
  return () => settled;
}

/** The system's or the library's code of what has failed, such as `ECONNREFUSED`; empty if there is none. */
function errnoOf(error: unknown): string {
  const cause = error instanceof GatewayError ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return ERRNO.test(code) ? code : '';
}

const ERRNO = /^[A-Z][A-Z0-9_]{1,63}$/;
