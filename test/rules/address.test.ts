import { array, assert, ipV4, ipV6, nat, oneof, property, string } from 'fast-check';
import { expect, test } from 'vitest';
import { Proxies } from '../../src/entry/node/server/address.ts';

const PROXIES = ['10.0.0.0/8', '192.0.2.7', '2001:db8:aaaa::/48', 'fd00::1'];
const PROXY = '10.0.0.1';
const RUNS = { numRuns: 200, seed: 1 };

/** All that is looked at of a request. `Forwarded` is not. */
const addressOf = (peer: string | undefined, forwarded?: string, trusted: readonly string[] = PROXIES) =>
  new Proxies(trusted).addressOf(
    peer,
    (name) => ({ 'x-forwarded-for': forwarded, forwarded: 'for=203.0.113.1' })[name],
  );

test.each([
  ['198.51.100.7', '198.51.100.7'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:0DB8:0001:0002:0003:0004:0005:0006', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  [undefined, 'unknown'],
])('a client with the peer address %s is %s', (peer, address) => {
  expect([addressOf(peer), addressOf(peer, undefined, [])]).toEqual([address, address]);
});

test.each([
  ['what it made up before', '203.0.113.9, 198.51.100.7', '198.51.100.7'],
  ['trusted hops after it', '198.51.100.7, 10.1.2.3, 192.0.2.7', '198.51.100.7'],
  ['a trusted hop in the guise of IPv6', '198.51.100.7, ::ffff:10.1.2.3', '198.51.100.7'],
  ['trusted hops of both kinds', '2001:db8::5,2001:db8:aaaa::9 ,fd00::1', '2001:db8:0:0::/64'],
  ['nobody but trusted ones', '10.9.9.9, 10.1.2.3', '10.9.9.9'],
  ['a neighbour of a trusted address', '203.0.113.9, 192.0.2.8', '192.0.2.8'],
  ['a port', '198.51.100.7:4711', '198.51.100.7'],
  ['a port behind IPv6', '[2001:db8::5]:4711', '2001:db8:0:0::/64'],
  ['nothing', '', PROXY],
  ['garbage in between', '198.51.100.7, unknown, 10.1.2.3', '10.1.2.3'],
  ['numbers of another base', '0x0a.1.1.1', PROXY],
])('behind trusted proxies a client with %s', (_, forwarded, address) => {
  expect([addressOf(PROXY, forwarded), addressOf(`::ffff:${PROXY}`, forwarded)]).toEqual([address, address]);
});

test('is its peer address, whatever it says, when nobody is trusted or it is not', () => {
  const any = property(ipV4(), string(), (claimed, more) => {
    expect(addressOf('198.51.100.7', `${more}, ${claimed}`)).toBe('198.51.100.7');
    expect(addressOf(PROXY, `${more}, ${claimed}`, [])).toBe(PROXY);
  });
  assert(any, RUNS);
});

test('cannot make its address another one by what it sends before its proxies', () => {
  const any = property(array(oneof(ipV4(), ipV6(), string())), nat({ max: 3 }), (claims, hops) => {
    const trusted = Array.from({ length: hops }, (_, at) => `10.0.1.${at}`);
    expect(addressOf(PROXY, [...claims, '198.51.100.7', ...trusted].join(', '))).toBe('198.51.100.7');
  });
  assert(any, RUNS);
});

test.each([
  [{ 'x-forwarded-proto': 'https' }, 'https'],
  [{ 'x-forwarded-proto': 'HTTP' }, 'http'],
  [{ 'x-forwarded-proto': 'http, https' }, 'https'],
  [{ 'x-forwarded-proto': 'http', forwarded: 'proto=https' }, 'http'],
  [{ forwarded: 'proto=https' }, undefined],
  [{ 'x-forwarded-proto': 'https://evil.example/' }, undefined],
  [{}, undefined],
])(
  'the scheme by %j is %s, of a trusted proxy, and of nobody else',
  (said: Readonly<Record<string, string>>, scheme) => {
    const schemeOf = (peer: string) => new Proxies(PROXIES).schemeOf(peer, (name) => said[name]);
    expect([schemeOf(PROXY), schemeOf('198.51.100.7')]).toEqual([scheme, undefined]);
  },
);
