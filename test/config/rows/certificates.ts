import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstAuthority as first, secondAuthority as second } from '../../support/authorities.ts';
import { each, type Rows } from '../rows.ts';

const folder = mkdtempSync(join(tmpdir(), 'portico-rows-'));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Good ones, for who needs some. */
export const PEM = {
  ca: file('ca.pem', `for tests\n${second.ca}${first.ca}`),
  cert: file('cert.pem', first.client.cert + first.ca),
  key: file('key.pem', first.client.key),
};
const otherKey = file('other-key.pem', second.client.key);
const spoiled = file('spoiled.pem', first.ca + second.ca.replace('\nMII', '\nMXI'));
const cutShort = file('cut-short.pem', first.ca + second.ca.slice(0, 200));
const empty = file('empty.pem', '');
const missing = join(folder, 'nothing.pem');

const NO_CERTIFICATES = 'a file with certificates, PEM';
const NO_KEY = 'a file with a private key and no passphrase, PEM';
const NO_PROXY = 'the http:// or https:// URL of a proxy, such as http://proxy.example:3128';

/** What was expected, and the code of what is there. */
const badIn = (expected: string, codes: Readonly<Record<string, string>>) =>
  Object.entries(codes).map(([value, code]) => [value, `${expected} (${code})`] as const);

const unread = [
  [missing, 'a file that is there'],
  [folder, 'a file, not a folder'],
] as const;
const [NO_BEGIN, NO_TYPE] = ['ERR_OSSL_PEM_NO_START_LINE', 'ERR_OSSL_UNSUPPORTED'];
const noCertificates = [
  ...unread,
  ...badIn(NO_CERTIFICATES, { [empty]: NO_BEGIN, [PEM.key]: NO_BEGIN, [spoiled]: 'ERR_OSSL_ASN1_WRONG_TAG' }),
  [cutShort, NO_CERTIFICATES] as const,
];
const noKeys = [...unread, ...badIn(NO_KEY, { [empty]: NO_TYPE, [PEM.ca]: NO_TYPE })];

function ofSide(side: 'UPSTREAM' | 'STORE', beside: Readonly<Record<string, string>> = {}): Rows[] {
  const [ca, cert, key] = [`${side}_CA_FILE`, `${side}_CERT_FILE`, `${side}_KEY_FILE`];
  return [
    { variable: ca, beside, good: [[PEM.ca, PEM.ca]], bad: noCertificates },
    {
      variable: cert,
      beside: { ...beside, [key]: PEM.key },
      good: [[PEM.cert, PEM.cert]],
      bad: noCertificates,
    },
    {
      variable: key,
      beside: { ...beside, [cert]: PEM.cert },
      good: [[PEM.key, PEM.key]],
      bad: [...noKeys, [otherKey, `the key of the first certificate in ${cert}`]],
    },
  ];
}

const proxies = ['HTTPS_PROXY', 'HTTP_PROXY'].map((variable): Rows => {
  const addresses = ['http://proxy.example:3128/', 'https://us:p%40ss@proxy.example/'];
  const logins = ['http://us:100%@proxy.example', 'http://100%@proxy.example', 'http://us%4:1@proxy.example'];
  const bad = ['socks5://proxy.example', 'http://:3128', 'proxy example', 'http://proxy.example/path', ...logins];
  return {
    variable,
    good: [...addresses, 'proxy.example:3128'].map((text) => [
      text,
      new URL(text.includes('://') ? text : addresses[0]!),
    ]),
    bad: each([...bad, 'http://proxy.example:99999'], NO_PROXY),
  };
});

export const rows: readonly Rows[] = [
  ...ofSide('UPSTREAM'),
  ...ofSide('STORE', { STORE_URL: 'rediss://store.example', SECRETS: 'x'.repeat(32) }),
  ...proxies,
  { variable: 'NO_PROXY', good: [['localhost,.internal', 'localhost,.internal']], bad: [] },
];
