import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { storeAddressOf } from '../../../../src/entry/node/redis/address.ts';
import { firstAuthority as first, secondAuthority as second } from '../../../support/authorities.ts';
import { each, type Rows } from '../rows.ts';

const folder = mkdtempSync(join(tmpdir(), 'portico-rows-'));

let count = 0;
function file(content: string | Uint8Array): string {
  const path = join(folder, `file-${count++}`);
  writeFileSync(path, content);
  return path;
}

const UNREAD = [
  [join(folder, 'nothing'), 'a file that is there'],
  [folder, 'a file, not a folder'],
] as const;

/** Good ones, for who needs some. */
const PEM = {
  ca: file(`for tests\n${second.ca}${first.ca}`),
  cert: file(first.client.cert + first.ca),
  key: file(first.client.key),
};
const otherKey = file(second.client.key);
const spoiled = file(first.ca + second.ca.replace('\nMII', '\nMXI'));
const cutShort = file(first.ca + second.ca.slice(0, 200));
const empty = file('');

const NO_CERTIFICATES = 'a file with certificates, PEM';
const NO_KEY = 'a file with a private key and no passphrase, PEM';
const AN_EXCLUSION = '*, a host, a .suffix, an IP address or a CIDR, each with or without a port';
const NOT_A_PROXY = 'the http:// or https:// URL of a proxy, such as http://proxy.example:3128';

/** What was expected, and the code of what is there. */
const badIn = (expected: string, codes: Readonly<Record<string, string>>) =>
  Object.entries(codes).map(([value, code]) => [value, `${expected} (${code})`] as const);

const [NO_BEGIN, NO_TYPE] = ['ERR_OSSL_PEM_NO_START_LINE', 'ERR_OSSL_UNSUPPORTED'];
const noCertificates = [
  ...UNREAD,
  ...badIn(NO_CERTIFICATES, { [empty]: NO_BEGIN, [PEM.key]: NO_BEGIN, [spoiled]: 'ERR_OSSL_ASN1_WRONG_TAG' }),
  [cutShort, NO_CERTIFICATES] as const,
];
const noKeys = [...UNREAD, ...badIn(NO_KEY, { [empty]: NO_TYPE, [PEM.ca]: NO_TYPE })];

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
    bad: each([...bad, 'http://proxy.example:99999'], NOT_A_PROXY),
  };
});

const UPSTREAMS =
  'http://a.example https://b.a.example.:8443 http://10.1.2.3 https://[fd00::1] http://[::ffff:a01:203]:81'.split(' ');
const [NAMES, FOURS, SIX] = [UPSTREAMS.slice(0, 2), [UPSTREAMS[2], UPSTREAMS[4]], [UPSTREAMS[3]]];

/** Which upstreams are reached without their proxy. */
const noProxy: Rows = {
  variable: 'NO_PROXY',
  meaning: (read) => UPSTREAMS.filter((url) => read.noProxy(new URL(url))),
  good: [
    ...each(['*', 'x,*', 'a.example b.a.example 10.0.0.0/8,fd00::/8'], UPSTREAMS),
    ...each(['localhost, .internal', ' ', 'ample', '*:8080', 'a.example:443', '10.1.2.4', '10.1.2.3:443', '::1'], []),
    ...each(['A.example.', '.a.example', '*.a.example', 'a.example:80,b.a.example:8443', 'x,,\texample'], NAMES),
    ...each(['10.1.2.3', '10.0.0.0/8', '10.1.2.3:80,10.0.0.0/8:81', '::ffff:10.1.2.3', '9.0.0.0/6'], FOURS),
    ...each(['fd00::1', '[FD00:0::1]', '[fd00::1]:443', 'fd00::/8', '[fd00::]/8', 'fd00::/8:443', '*:443'], SIX),
  ],
  bad: `http://a.example a.example/path us@a.example a;b <local> a..example . *. ** a.*.example *a.example 10. 192.168.*
    10.1/16 10.0.0.0/33 10.0.0.0/ 256.1.1.1 .1.2.3.4 [10.1.2.3] [a.example] [fd00::1 fd00::/129 fe80::1%eth0 a.example: a.example:0 *:65536`
    .split(/\s+/)
    .map((entry) => [`a.example, ${entry}`, `entry 2 to be ${AN_EXCLUSION}`]),
};

const SECRET = 'the secret of these rows and of no other';
const SHORT = 'to be a secret of 32 characters or more';
const EMPTY = 'not to be empty; is there a comma too many?';

const NO_FILE = [
  ...UNREAD,
  [empty, 'a file that is not empty'],
  [file('\r\n\n'), 'a file that is not empty'],
  [file(Buffer.from('ffff', 'hex')), 'a file in UTF-8'],
] as const;

export const rows: readonly Rows[] = [
  ...ofSide('UPSTREAM'),
  ...ofSide('STORE', { STORE_URL: 'rediss://store.example', SECRETS: 'x'.repeat(32) }),
  ...proxies,
  noProxy,
  {
    variable: 'SECRETS',
    good: [
      ['x'.repeat(32), ['x'.repeat(32)]],
      [` ${SECRET}, ${SECRET}y`, [SECRET, `${SECRET}y`]],
      [[SECRET, `${SECRET}y`, SECRET].join(), [SECRET, `${SECRET}y`, SECRET]],
    ],
    bad: [
      ...each(['x', 'x'.repeat(31), `${'x'.repeat(31)} `], `entry 1 ${SHORT}`),
      [`${SECRET},x`, `entry 2 ${SHORT}`],
      [`${SECRET},${SECRET},x,y`, `entry 3 ${SHORT}`],
      [`${SECRET},`, `entry 2 ${EMPTY}`],
      [`${SECRET}, ,${SECRET}`, `entry 2 ${EMPTY}`],
      [',', `entry 1 ${EMPTY}`],
      [' ', `entry 1 ${EMPTY}`],
    ],
  },
  {
    variable: 'SECRETS_FILE',
    beside: { SESSIONS: 'false' },
    meaning: ({ secrets }) => secrets,
    good: [
      [file(SECRET), [SECRET]],
      [file(`${SECRET}\n`), [SECRET]],
      [file(`\uFEFF${SECRET},${SECRET}y\r\n`), [SECRET, `${SECRET}y`]],
    ],
    bad: NO_FILE,
  },
  {
    variable: 'STORE_URL_FILE',
    beside: { SECRETS: SECRET },
    meaning: ({ storeUrl }) => storeUrl,
    good: [[file('redis://:p%40ss@store/1\n'), storeAddressOf('redis://:p%40ss@store/1')]],
    bad: NO_FILE,
  },
];
