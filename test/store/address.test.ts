import { expect, it } from 'vitest';
import { storeAddressOf } from '../../src/entry/node/redis/address.ts';

const plain = { tls: false, db: 0 };

it.each([
  ['redis://store', { ...plain, kind: 'one', nodes: [{ host: 'store', port: 6379 }] }],
  ['redis://store:1/', { ...plain, kind: 'one', nodes: [{ host: 'store', port: 1 }] }],
  ['redis://[::1]:7/12', { ...plain, db: 12, kind: 'one', nodes: [{ host: '::1', port: 7 }] }],
  ['rediss://10.0.0.1', { ...plain, tls: true, kind: 'one', nodes: [{ host: '10.0.0.1', port: 6379 }] }],
  [
    'redis://us%3Aer:p%40%25%2Fs:s@store',
    { ...plain, kind: 'one', user: 'us:er', password: 'p@%/s:s', nodes: [{ host: 'store', port: 6379 }] },
  ],
  ['redis://:p@store', { ...plain, kind: 'one', password: 'p', nodes: [{ host: 'store', port: 6379 }] }],
  ['redis://user@store', { ...plain, kind: 'one', user: 'user', password: '', nodes: [{ host: 'store', port: 6379 }] }],
  [
    'redis-sentinel://:p@a:1,b/primary/2',
    {
      ...plain,
      db: 2,
      kind: 'sentinel',
      password: 'p',
      master: 'primary',
      nodes: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26_379 },
      ],
    },
  ],
  [
    'rediss-sentinel://user:p@a:1,b/primary',
    {
      ...plain,
      tls: true,
      kind: 'sentinel',
      user: 'user',
      password: 'p',
      master: 'primary',
      nodes: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26_379 },
      ],
    },
  ],
])('%s says where the store is', (text, address) => {
  expect(storeAddressOf(text)).toEqual(address);
});
