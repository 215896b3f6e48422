import type { DetailedPeerCertificate } from 'node:tls';
import { about, type Finding } from './findings.ts';

const { good, poor, bad } = about('upstream');

/** What a server has shown, and the code of what is wrong with it. */
export interface Shown {
  readonly certificate: DetailedPeerCertificate;
  readonly error: string | undefined;
}

const DAY_MS = 86_400_000;
const SOON_DAYS = 14;

/** Errors that are about the certificate itself; with any other, nobody whom we trust has signed it. */
const OF_ITSELF = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID', 'ERR_TLS_CERT_ALTNAME_INVALID']);

export function certificateFindings({ certificate, error }: Shown, host: string): Finding[] {
  const findings = [...datesOf(certificate)];
  if (error === 'ERR_TLS_CERT_ALTNAME_INVALID')
    findings.push(
      bad(
        `its certificate is of ${certificate.subjectaltname ?? 'no name'}, not of ${host}`,
        'Call it by a name that the certificate has',
      ),
    );
  if (error !== undefined && !OF_ITSELF.has(error)) findings.push(untrusted(certificate, error));
  return findings.length > 0
    ? findings
    : [good(`TLS: certificate of ${issuerOf(certificate)}, until ${dayOf(certificate.valid_to)}`)];
}

function datesOf({ valid_from: from, valid_to: to }: DetailedPeerCertificate): Finding[] {
  const leftDays = (Date.parse(to) - Date.now()) / DAY_MS;
  if (leftDays < 0)
    return [bad(`its certificate has expired on ${dayOf(to)}`, 'Whoever runs the upstream has to renew it')];
  if (Date.parse(from) > Date.now())
    return [bad(`its certificate is not valid before ${dayOf(from)}`, 'Look at the clock of this machine')];
  if (leftDays < SOON_DAYS)
    return [poor(`its certificate expires on ${dayOf(to)}`, 'Whoever runs the upstream has to renew it')];
  return [];
}

function untrusted(certificate: DetailedPeerCertificate, code: string): Finding {
  return bad(
    `its certificate is of an authority that is not trusted: ${issuerOf(topOf(certificate))} (${code})`,
    'If it is yours, name the PEM file with its certificate in UPSTREAM_CA_FILE',
  );
}

/** The last one of the chain, as far as it was shown. */
function topOf(certificate: DetailedPeerCertificate): DetailedPeerCertificate {
  const { issuerCertificate: issuer } = certificate;
  return issuer === undefined || issuer === certificate ? certificate : topOf(issuer);
}

const issuerOf = ({ issuer }: DetailedPeerCertificate) => [issuer.CN ?? issuer.O ?? 'no name'].flat().join(', ');

const dayOf = (date: string) => new Date(date).toISOString().slice(0, 10);
