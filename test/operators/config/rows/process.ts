import { availableParallelism } from 'node:os';
import { A_STORE, storeAddressOf } from '../../../../src/entry/node/redis/address.ts';
import { each, integers, type Rows } from '../rows.ts';

const NO_HOST = 'a name or an IP address, without a port';

const hosts = (variable: string): Rows => ({
  variable,
  good: ['0.0.0.0', '::', 'fe80::1%eth0', '::ffff:10.0.0.1', 'gateway.internal'].map((host) => [host, host]),
  bad: each(['localhost:8787', '[::1]', 'http://127.0.0.1', 'gateway/', 'a b', ' ', 'a,b', '*'], NO_HOST),
});

const NO_CIDR = (nth: number) => `entry ${nth} to be an IP address or a CIDR such as 10.0.0.0/8`;
const NO_ENTRY = (nth: number) => `entry ${nth} not to be empty; is there a comma too many?`;
const SECRETS = 'a secret for these rows and no other';
const WORKERS = 'an integer from 1 to 64, or auto for one a core';

export const rows: readonly Rows[] = [
  hosts('HOST'),
  hosts('ADMIN_HOST'),
  integers('PORT', 0, 65_535),
  integers('ADMIN_PORT', 0, 65_535),
  integers('SANDBOX_PORT', 0, 65_535),
  {
    variable: 'WORKERS',
    good: [
      ['1', 1],
      ['2', 2],
      ['64', 64],
      ['auto', Math.min(availableParallelism(), 64)],
    ],
    bad: each(['0', '65', '-1', '1.5', 'AUTO', 'all', '2 ', ''.padEnd(9, '1')], WORKERS),
  },
  integers('SHUTDOWN_GRACE_MS', 0, 600_000),
  integers('SHUTDOWN_DELAY_MS', 0, 600_000),
  {
    variable: 'TRUSTED_PROXIES',
    good: [
      ['10.0.0.1', ['10.0.0.1']],
      ['10.0.0.0/8, 192.0.2.7,2001:db8::/32 ,::1', ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32', '::1']],
      ['::1/128', ['::1/128']],
    ],
    bad: [
      ...each(['x', 'proxy.internal', '*', '10.0.0.256', '10.0.0.0/33', '10.0.0.0/', '10.0.0.1:80'], NO_CIDR(1)),
      ...each(['10.0.0.1 10.0.0.2', '10.0.0.1;10.0.0.2', '2001:db8::/129', '[::1]', 'x,y'], NO_CIDR(1)),
      ['10.0.0.1,proxy.internal', NO_CIDR(2)],
      [',10.0.0.1', NO_ENTRY(1)],
      ['10.0.0.1, ,10.0.0.2', NO_ENTRY(2)],
    ],
  },
  {
    variable: 'STORE_URL',
    beside: { SECRETS },
    good: [
      'redis://store',
      'redis://:p%40ss@[::1]:6380/3',
      'rediss://user:pass@store',
      'redis://store:65535/',
      'redis-sentinel://one:26379,two/primary',
      'rediss-sentinel://user:pass@one,two/primary/2',
    ].map((url) => [url, storeAddressOf(url) ?? 'an address']),
    bad: [
      ['store:6379', '127.0.0.1', 'http://store', 'redis:store', 'redis-cluster://a', 'REDIS://store', ' redis://a'],
      ['redis://u:100%@store', 'redis://u:p@ss@store', 'redis://u:p/x@store', 'redis://u,v@store'],
      ['redis://store?db=1', 'redis://store/1#x'],
      ['redis:///1', 'redis://:6379', 'redis://a b', 'redis-sentinel://a,/primary', 'redis-sentinel://a,,b/primary'],
      ['redis://a:', 'redis://a:0', 'redis://a:65536', 'redis://a:x', 'redis-sentinel://a,b:123456/primary'],
      ['redis://a,b', 'redis://a/primary', 'redis://a/12345', 'redis://a/1/2'],
      ['redis-sentinel://a', 'redis-sentinel://a/', 'redis-sentinel://a/primary/x'],
    ].flatMap((urls) => each(urls, A_STORE)),
  },
];
