import { array, assert, integer, ipV4, ipV6, nat, oneof, pre, property, string, tuple } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addresses, schemes } from '../../src/entry/node/server/address.ts';

const PROXIES = ['10.0.0.0/8', '192.0.2.7', '2001:db8:aaaa::/48', 'fd00::1'];

interface From {
  readonly peer: string | undefined;
  readonly forwarded?: string;
  readonly trusted?: readonly string[];
}

/** All that is looked at of a request. `Forwarded` is not. */
function addressOf({ peer, forwarded, trusted = PROXIES }: From): string {
  return addresses(trusted)(peer, (name) => ({ 'x-forwarded-for': forwarded, forwarded: 'for=203.0.113.1' })[name]);
}

const addressIn = (...groups: string[][]) => addressOf({ peer: groups.flat().join(':'), trusted: [] });

describe('a client', () => {
  test.each([
    ['198.51.100.7', '198.51.100.7'],
    ['::ffff:198.51.100.7', '198.51.100.7'],
    ['0:0:0:0:0:FFFF:c633:6407', '198.51.100.7'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0DB8:0001:0002:0003:0004:0005:0006', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['64:ff9b::198.51.100.7', '64:ff9b:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    [undefined, 'unknown'],
  ])('with the peer address %s is %s', (peer, address) => {
    expect(addressOf({ peer })).toBe(address);
    expect(addressOf({ peer, trusted: [] })).toBe(address);
  });

  test('is its peer address, whatever it says, when nobody is trusted or it is not', () => {
    assert(
      property(ipV4(), string(), (claimed, more) => {
        const forwarded = `${more}, ${claimed}`;
        expect(addressOf({ peer: '198.51.100.7', forwarded })).toBe('198.51.100.7');
        expect(addressOf({ peer: '10.0.0.1', forwarded, trusted: [] })).toBe('10.0.0.1');
      }),
    );
  });

  test('has one address for all of its /64, and another one outside', () => {
    const group = integer({ min: 0, max: 0xffff }).map((value) => value.toString(16));
    const four = tuple(group, group, group, group);
    assert(
      property(four, four, four, four, (prefix, one, other, otherPrefix) => {
        pre(prefix.some((value) => value !== '0') && prefix.join(':') !== otherPrefix.join(':'));
        expect(addressIn(prefix, one)).toBe(addressIn(prefix, other));
        expect(addressIn(prefix, one)).not.toBe(addressIn(otherPrefix, one));
      }),
    );
  });
});

describe('behind trusted proxies, a client', () => {
  test.each([
    ['one hop', '198.51.100.7', '198.51.100.7'],
    ['what it made up before', '203.0.113.9, 198.51.100.7', '198.51.100.7'],
    ['trusted hops after it', '198.51.100.7, 10.1.2.3, 192.0.2.7', '198.51.100.7'],
    ['a trusted hop in the guise of IPv6', '198.51.100.7, ::ffff:10.1.2.3', '198.51.100.7'],
    ['trusted hops of both kinds', '2001:db8::5,2001:db8:aaaa::9 ,fd00::1', '2001:db8:0:0::/64'],
    ['nobody but trusted ones', '10.9.9.9, 10.1.2.3', '10.9.9.9'],
    ['a neighbour of a trusted address', '203.0.113.9, 192.0.2.8', '192.0.2.8'],
    ['a port', '198.51.100.7:4711', '198.51.100.7'],
    ['a port behind IPv6', '[2001:db8::5]:4711', '2001:db8:0:0::/64'],
    ['nothing', '', '10.0.0.1'],
    ['garbage', 'garbage', '10.0.0.1'],
    ['garbage in between', '198.51.100.7, unknown, 10.1.2.3', '10.1.2.3'],
    ['an empty hop', '198.51.100.7,, 10.1.2.3', '10.1.2.3'],
    ['a range', '198.51.100.0/24', '10.0.0.1'],
    ['a number out of range', '256.1.1.1', '10.0.0.1'],
    ['numbers of another base', '0x0a.1.1.1', '10.0.0.1'],
    ['a name', 'client.example', '10.0.0.1'],
  ])('with %s', (_, forwarded, address) => {
    expect(addressOf({ peer: '10.0.0.1', forwarded })).toBe(address);
    expect(addressOf({ peer: '::ffff:10.0.0.1', forwarded })).toBe(address);
  });

  test('that sends no header is the proxy', () => {
    expect(addressOf({ peer: '10.0.0.1' })).toBe('10.0.0.1');
  });

  test('cannot make its address another one by what it sends', () => {
    assert(
      property(array(oneof(ipV4(), ipV6(), string())), nat({ max: 3 }), (claims, hops) => {
        const trusted = Array.from({ length: hops }, (_, at) => `10.0.1.${at}`);
        const forwarded = [...claims, '198.51.100.7', ...trusted].join(', ');
        expect(addressOf({ peer: '10.0.0.1', forwarded })).toBe('198.51.100.7');
      }),
    );
  });

  test('has an address whatever anybody sends', () => {
    assert(
      property(string({ unit: 'binary', maxLength: 200 }), (forwarded) => {
        expect(addressOf({ peer: '10.0.0.1', forwarded })).toMatch(/^([\d.]+|[\da-f:]+::\/64)$/);
      }),
    );
  });
});

const PEER = '10.0.0.1';

const schemeOf = (peer: string, said: Readonly<Record<string, string>>) => schemes(PROXIES)(peer, (name) => said[name]);

describe('the scheme by which a client came', () => {
  test.each([
    [{ 'x-forwarded-proto': 'https' }, 'https'],
    [{ 'x-forwarded-proto': 'HTTP' }, 'http'],
    [{ 'x-forwarded-proto': 'http, https' }, 'https'],
    [{ 'x-forwarded-proto': 'https,http' }, 'http'],
    [{ 'x-forwarded-proto': 'http', forwarded: 'proto=https' }, 'http'],
    [{ forwarded: 'proto=https' }, undefined],
    [{ 'x-forwarded-proto': 'javascript' }, undefined],
    [{ 'x-forwarded-proto': 'https://evil.example/' }, undefined],
    [{ 'x-forwarded-proto': '' }, undefined],
    [{}, undefined],
  ])('by %j is %s, of a trusted proxy, and of nobody else', (said, scheme) => {
    expect(schemeOf(PEER, said)).toBe(scheme);
    expect(schemeOf('198.51.100.7', said)).toBeUndefined();
  });
});
