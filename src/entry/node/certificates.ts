import { createPrivateKey, hash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import type { ConfigProblem } from '../../config.ts';
import type { Logger } from '../../core/logger.ts';
import { EXPECTED } from './file-text.ts';

/** What a PEM file is to hold. `check` throws where it does not. */
export interface Kind {
  readonly expected: string;
  readonly check: (pem: string) => unknown;
}

const BEGIN = '-----BEGIN CERTIFICATE-----';
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

export const CERTIFICATES: Kind = {
  expected: 'a file with certificates, PEM',
  check: (pem) => {
    const whole = (pem.match(CERTIFICATE) ?? [pem]).map((one) => new X509Certificate(one));
    if (pem.split(BEGIN).length - 1 > whole.length) throw new Error('one has no end');
  },
};

export const KEY: Kind = { expected: 'a file with a private key and no passphrase, PEM', check: createPrivateKey };

/** @throws Error if it cannot be read, or holds something else */
export function readPem(path: string, { check }: Kind): string {
  const pem = readFileSync(path, 'utf8');
  check(pem);
  return pem;
}

/** Paths. */
export interface TlsFiles {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** Whom to trust in TLS beside the usual authorities, and what to show. */
export interface Tls {
  /** Undefined where no file says. */
  readonly secureContext?: SecureContext | undefined;
  /** The same for those who are shown nothing. */
  readonly trusting?: SecureContext | undefined;
}

/** Whom the files are for: their variables begin with it. */
export const SIDES = ['UPSTREAM', 'STORE'] as const;
export type Side = (typeof SIDES)[number];

type Read = { readonly data: Tls; readonly problems?: never } | { readonly problems: readonly ConfigProblem[] };

/** What the files of the upstream, or of the store, hold now. */
export function readTls(side: Side, files: TlsFiles): Read {
  const ca = fileOf(`${side}_CA_FILE`, files.ca, CERTIFICATES);
  const cert = fileOf(`${side}_CERT_FILE`, files.cert, CERTIFICATES);
  const key = fileOf(`${side}_KEY_FILE`, files.key, KEY);
  const problems = [ca, cert, key].flatMap(({ problem }) => problem ?? []);
  if (problems.length > 0) return { problems };
  const [variable, expected] = unpaired(side, cert.pem, key.pem) ?? [];
  if (variable && expected) return { problems: [{ variable, expected }] };
  try {
    return { data: tlsOf(ca.pem, cert.pem, key.pem) };
  } catch (error) {
    const last = cert.pem === undefined ? 'CA' : 'CERT';
    return {
      problems: [{ variable: `${side}_${last}_FILE`, expected: `what TLS can use${inBrackets(codeIn(error))}` }],
    };
  }
}

function fileOf(variable: string, path: string | undefined, kind: Kind) {
  try {
    return { pem: path === undefined ? undefined : readPem(path, kind) };
  } catch (error) {
    const code = codeIn(error);
    return { problem: { variable, expected: EXPECTED[code] ?? kind.expected + inBrackets(code) } };
  }
}

/** A certificate and its key belong together. */
function unpaired(side: Side, cert: string | undefined, key: string | undefined) {
  const [ofCert, ofKey] = [`${side}_CERT_FILE`, `${side}_KEY_FILE`];
  if (cert === undefined)
    return key === undefined ? undefined : ([ofCert, `${CERTIFICATES.expected}, since ${ofKey} is set`] as const);
  if (key === undefined) return [ofKey, `${KEY.expected}, since ${ofCert} is set`] as const;
  const fits = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  return fits ? undefined : ([ofKey, `the key of the first certificate in ${ofCert}`] as const);
}

/** Contexts are made once: each takes milliseconds. What is in the file is trusted, whether it is a root or not. */
function tlsOf(ca: string | undefined, cert: string | undefined, key: string | undefined): Tls {
  const trusted = ca === undefined ? {} : { ca: [...getCACertificates(), ca], allowPartialTrustChain: true };
  const trusting = ca === undefined ? undefined : createSecureContext(trusted);
  const secureContext = cert === undefined ? trusting : createSecureContext({ ...trusted, cert, key });
  return { secureContext, trusting };
}

/** The system's or OpenSSL's, such as `ENOENT`; empty if there is none. */
const codeIn = (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : '');

const inBrackets = (code: string) => (code === '' ? '' : ` (${code})`);

const EVERY_MS = 10_000;

interface WatchOptions {
  readonly logger: Logger;
  readonly refuse: (problems: readonly ConfigProblem[]) => never;
  readonly everyMs?: number;
}

/** What the files hold, read again when one of them has changed. Where there are none nothing is looked at. */
export class WatchedTls {
  readonly #side: Side;
  readonly #files: TlsFiles;
  readonly #logger: Logger;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #listeners: (() => void)[] = [];
  /** Of the last look. */
  #found: string;
  /** What was read last. */
  #seen: string;
  #tls: Tls;

  /** `refuse`: says what is wrong with them at the start. */
  constructor(side: Side, files: TlsFiles, { logger, refuse, everyMs = EVERY_MS }: WatchOptions) {
    this.#side = side;
    this.#files = files;
    this.#logger = logger;
    this.#found = this.#seen = stateOf(files); // first, so that what changes meanwhile is read again
    const read = readTls(side, files);
    this.#tls = read.problems ? refuse(read.problems) : read.data;
    if (this.#seen !== '') this.#timer = setInterval(() => this.#look(), everyMs).unref();
  }

  /** For a connection that is made now. */
  get secureContext(): SecureContext | undefined {
    return this.#tls.secureContext;
  }

  get trusting(): SecureContext | undefined {
    return this.#tls.trusting;
  }

  /** Called after they have been read again. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /**
   * By what is in them and not by events: a volume of Kubernetes swaps a link above them. What two looks in a row find counts,
   * since a file may be half written.
   */
  #look(): void {
    const state = stateOf(this.#files);
    const isSteady = state === this.#found;
    this.#found = state;
    if (!isSteady || state === this.#seen) return;
    this.#seen = state;
    const read = readTls(this.#side, this.#files);
    if (read.problems) return this.#complain(read.problems);
    this.#tls = read.data;
    this.#logger.info({}, `the certificates of ${this.#side}_…_FILE have changed: new connections use the new ones`);
    for (const listener of this.#listeners) listener();
  }

  #complain(problems: readonly ConfigProblem[]): void {
    for (const { variable, expected } of problems)
      this.#logger.warn(
        { variable },
        `what is in the file now cannot be used, so the old one still is: expected ${expected}`,
      );
  }
}

/** Another one after any change; empty without a file. */
const stateOf = ({ ca, cert, key }: TlsFiles): string =>
  [ca, cert, key].flatMap((path) => (path === undefined ? [] : `${contentOf(path)};`)).join('');

function contentOf(path: string): string {
  try {
    return hash('sha256', readFileSync(path));
  } catch (error) {
    return codeIn(error);
  }
}
