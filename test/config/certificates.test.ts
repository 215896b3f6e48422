import { expect, test } from 'vitest';
import { proxyTo, settingsIn } from '../../src/entry/node/settings.ts';
import { certificateRows } from './rows-certificates.ts';

const fieldOf = (variable: string) =>
  variable.toLowerCase().replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

const problemsOf = (record: Readonly<Record<string, string>>) => {
  const read = settingsIn(record);
  return 'problems' in read ? read.problems : [];
};

test.each(certificateRows)('$variable: $value', ({ variable, value, good, bad, others = {} }) => {
  const read = settingsIn({ [variable]: value, ...others });
  if (bad === undefined) {
    expect(read).toHaveProperty('data');
    const data = 'data' in read ? JSON.parse(JSON.stringify(read.data)) : {};
    expect(data[fieldOf(variable)]).toEqual(good);
    return;
  }
  expect(problemsOf({ [variable]: value, ...others })).toEqual([{ variable, expected: expect.stringContaining(bad) }]);
  expect(problemsOf({ [variable]: value, ...others })[0]?.expected).not.toContain(value);
});

const [FILE = ''] = certificateRows.flatMap(({ variable, good }) =>
  variable === 'STORE_CA_FILE' && good !== undefined ? [good] : [],
);
const [CERT = ''] = certificateRows.flatMap(({ variable, good }) =>
  variable === 'STORE_CERT_FILE' && good !== undefined ? [good] : [],
);

test('a certificate needs its key, and a key its certificate', () => {
  expect(problemsOf({ UPSTREAM_CERT_FILE: CERT })).toEqual([
    {
      variable: 'UPSTREAM_KEY_FILE',
      expected: 'a file with a private key and no passphrase, PEM, since UPSTREAM_CERT_FILE is set',
    },
  ]);
  const key = CERT.replace('cert.pem', 'key.pem');
  expect(problemsOf({ UPSTREAM_KEY_FILE: key })).toEqual([
    { variable: 'UPSTREAM_CERT_FILE', expected: 'a file with certificates, PEM, since UPSTREAM_KEY_FILE is set' },
  ]);
});

test.each([undefined, 'redis://store.example', 'redis-sentinel://store.example/main'])(
  'files for the store need one with TLS, unlike %s',
  (store) => {
    const expected = 'one with TLS, rediss…, since STORE_CA_FILE is set';
    expect(problemsOf({ STORE_CA_FILE: FILE, ...(store !== undefined && { STORE_URL: store }) })).toEqual([
      { variable: 'STORE_URL', expected },
    ]);
  },
);

test('a name in small letters counts before the other', () => {
  const [capital, small] = ['http://capital.example/', 'http://small.example/'];
  const read = settingsIn({
    HTTPS_PROXY: capital,
    https_proxy: small,
    HTTP_PROXY: capital,
    no_proxy: 'a',
    NO_PROXY: 'b',
  });
  const settings = 'data' in read ? read.data : expect.fail('it is no good');
  const of = (url: string) => proxyTo(new URL(url), settings);
  expect([of('https://upstream.example').proxy?.href, of('http://upstream.example').proxy?.href]).toEqual([
    small,
    capital,
  ]);
  expect(of('https://upstream.example').noProxy).toBe('a');
  expect(problemsOf({ http_proxy: 'socks5://proxy.example' })).toMatchObject([{ variable: 'HTTP_PROXY' }]);
});

test('all that is bad is named', () => {
  const names = problemsOf({
    WORKERS: 'x',
    UPSTREAM_CA_FILE: '/nothing',
    STORE_KEY_FILE: '/nothing',
    HTTPS_PROXY: 'ftp://x',
  });
  expect(names.map(({ variable }) => variable).toSorted()).toEqual([
    'HTTPS_PROXY',
    'STORE_KEY_FILE',
    'STORE_URL',
    'UPSTREAM_CA_FILE',
    'WORKERS',
  ]);
});
