import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import type { ConfigProblem, Variables } from '../../config.ts';
import { codeOf, fileText } from './files.ts';

/** Whom to trust in TLS beside the usual authorities, and what to show. */
export interface Tls {
  /** Undefined where no file says. */
  readonly secureContext?: SecureContext | undefined;
  /** The same for those who are shown nothing. */
  readonly trusting?: SecureContext | undefined;
}

/** What was read, or what is wrong with it. */
export type Read<T> = { readonly data: T } | { readonly problems: readonly ConfigProblem[] };

const CERTIFICATES = 'a file with certificates, PEM';
const KEY = 'a file with a private key and no passphrase, PEM';

/** Such as ` (ENOENT)`; empty if the error has no code. */
const codeIn = (error: unknown) => (codeOf(error) === undefined ? '' : ` (${codeOf(error)})`);

const bad = (variable: string, expected: string) => ({ problems: [{ variable, expected }] });

/** What the files of the upstream, or of the store, hold; or what is wrong with them. */
export function readTls(side: 'UPSTREAM' | 'STORE', given: Variables): Read<Tls> {
  const [ofCa, ofCert, ofKey] = [`${side}_CA_FILE`, `${side}_CERT_FILE`, `${side}_KEY_FILE`] as const;
  const problems: ConfigProblem[] = [];
  /** What `use` makes of a file's text. It throws where it can make nothing of it. */
  const read = <T>(variable: string, expected: string, use: (pem: string) => T): T | undefined => {
    const path = given[variable];
    if (typeof path !== 'string') return undefined; // unset, or said to be bad already
    const file = fileText(path);
    try {
      if ('text' in file) return use(file.text);
      problems.push({ variable, expected: file.expected });
    } catch (error) {
      problems.push({ variable, expected: expected + codeIn(error) });
    }
    return undefined;
  };
  const ca = read(ofCa, CERTIFICATES, checkedCertificates);
  const cert = read(ofCert, CERTIFICATES, checkedCertificates);
  const key = read(ofKey, KEY, (pem) => ({ pem, own: createPrivateKey(pem) }));
  if (problems.length > 0) return { problems };
  if (key && given[ofCert] === undefined) return bad(ofCert, `${CERTIFICATES}, since ${ofKey} is set`);
  if (cert !== undefined && given[ofKey] === undefined) return bad(ofKey, `${KEY}, since ${ofCert} is set`);
  if (cert !== undefined && key && !new X509Certificate(cert).checkPrivateKey(key.own))
    return bad(ofKey, `the key of the first certificate in ${ofCert}`);
  try {
    // Contexts are made once: each takes milliseconds. What is in the file is trusted, whether it is a root or not.
    const trusted = ca === undefined ? {} : { ca: [...getCACertificates(), ca], allowPartialTrustChain: true };
    const trusting = ca === undefined ? undefined : createSecureContext(trusted);
    const secureContext = cert === undefined ? trusting : createSecureContext({ ...trusted, cert, key: key?.pem });
    return { data: { secureContext, trusting } };
  } catch (error) {
    return bad(cert === undefined ? ofCa : ofCert, `what TLS can use${codeIn(error)}`);
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** @throws Error if one is no certificate, or has no end */
function checkedCertificates(pem: string): string {
  const whole = (pem.match(CERTIFICATE) ?? [pem]).map((one) => new X509Certificate(one));
  if (pem.split('-----BEGIN CERTIFICATE-----').length - 1 > whole.length) throw new Error('one has no end');
  return pem;
}
