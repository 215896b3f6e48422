import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstAuthority as first, secondAuthority as second } from '../support/authorities.ts';

const folder = mkdtempSync(join(tmpdir(), 'portico-rows-'));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const certificates = file('ca.pem', `for tests\n${second.ca}${first.ca}`);
const cert = file('cert.pem', first.client.cert + first.ca);
const key = file('key.pem', first.client.key);
const otherKey = file('other-key.pem', second.client.key);
const spoiled = file('spoiled.pem', first.ca + second.ca.replace('\nMII', '\nMXI'));
const empty = file('empty.pem', '');
const missing = join(folder, 'nothing.pem');

const NO_CERTIFICATES = 'a file with certificates, PEM';
const NO_KEY = 'a file with a private key and no passphrase, PEM';
const NO_PROXY = 'the http:// or https:// URL of a proxy, such as http://proxy.example:3128';

/** A variable with a value, and what is read or expected of it. */
interface Row {
  readonly variable: string;
  readonly value: string;
  /** What is read. */
  readonly good?: string;
  /** How what was expected begins. */
  readonly bad?: string;
  /** Set with it. */
  readonly others?: Readonly<Record<string, string>>;
}

const ofSide = (side: 'UPSTREAM' | 'STORE', others: Row['others'] = {}): Row[] => {
  const [ca, ofCert, ofKey] = [`${side}_CA_FILE`, `${side}_CERT_FILE`, `${side}_KEY_FILE`];
  const badCertificates = [missing, folder, empty, key, spoiled].flatMap((value) => [
    { variable: ca, value, bad: NO_CERTIFICATES, others },
    { variable: ofCert, value, bad: NO_CERTIFICATES, others: { ...others, [ofKey]: key } },
  ]);
  const badKeys = [missing, folder, empty, certificates].map((value) => {
    return { variable: ofKey, value, bad: NO_KEY, others: { ...others, [ofCert]: cert } };
  });
  return [
    { variable: ca, value: certificates, good: certificates, others },
    { variable: ofCert, value: cert, good: cert, others: { ...others, [ofKey]: key } },
    ...badCertificates,
    ...badKeys,
    {
      variable: ofKey,
      value: otherKey,
      bad: `the key of the first certificate in ${ofCert}`,
      others: { ...others, [ofCert]: cert },
    },
  ];
};

const proxies = ['HTTPS_PROXY', 'HTTP_PROXY'].flatMap((variable): Row[] => [
  { variable, value: 'http://proxy.example:3128', good: 'http://proxy.example:3128/' },
  { variable, value: 'https://us:p%40ss@proxy.example', good: 'https://us:p%40ss@proxy.example/' },
  { variable, value: 'proxy.example:3128', good: 'http://proxy.example:3128/' },
  ...[
    'socks5://proxy.example',
    'http://:3128',
    'proxy example',
    'http://proxy.example/path',
    'http://proxy.example:99999',
  ].map((value) => ({ variable, value, bad: NO_PROXY })),
]);

/** Of certificates and proxies. */
export const certificateRows: readonly Row[] = [
  ...ofSide('UPSTREAM'),
  ...ofSide('STORE', { STORE_URL: 'rediss-cluster://store.example', SECRETS: 'x'.repeat(32) }),
  ...proxies,
  { variable: 'NO_PROXY', value: 'localhost,.internal', good: 'localhost,.internal' },
];
