import { expect, test } from 'vitest';
import { proxyTo, settingsIn } from '../../src/entry/node/settings.ts';
import { PEM } from './rows/certificates.ts';

const problemsOf = (record: Readonly<Record<string, string>>) => {
  const read = settingsIn(record);
  return 'problems' in read ? read.problems : [];
};

test('a certificate needs its key, and a key its certificate', () => {
  expect(problemsOf({ UPSTREAM_CERT_FILE: PEM.cert })).toEqual([
    {
      variable: 'UPSTREAM_KEY_FILE',
      expected: 'a file with a private key and no passphrase, PEM, since UPSTREAM_CERT_FILE is set',
    },
  ]);
  expect(problemsOf({ UPSTREAM_KEY_FILE: PEM.key })).toEqual([
    { variable: 'UPSTREAM_CERT_FILE', expected: 'a file with certificates, PEM, since UPSTREAM_KEY_FILE is set' },
  ]);
});

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
    'UPSTREAM_CA_FILE',
    'WORKERS',
  ]);
});
