import { array, assert, integer, ipV4, ipV6, nat, oneof, pre, property, string, tuple } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addresses, schemes } from '../../src/entry/node/server/address.ts';
import { warningOfStrays } from '../../src/entry/node/server/strays.ts';

const PROXIES = ['10.0.0.0/8', '192.0.2.7', '2001:db8:aaaa::/48', 'fd00::1'];

interface From {
  readonly peer: string | undefined;
  readonly forwarded?: string;
  /** `Forwarded`. */
  readonly elements?: string;
  readonly trusted?: readonly string[];
}

/** All that is looked at of a request. */
function addressOf({ peer, forwarded, elements, trusted = PROXIES }: From): string {
  return addresses(trusted)(peer, (name) => ({ 'x-forwarded-for': forwarded, forwarded: elements })[name]);
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

describe('behind trusted proxies that send Forwarded, a client', () => {
  test.each([
    ['one hop', 'for=198.51.100.7', '198.51.100.7'],
    ['other parameters', 'By=10.0.0.1;FOR="198.51.100.7";proto=https;host="a,b;c"', '198.51.100.7'],
    ['what it made up before', 'for=203.0.113.9, for=198.51.100.7;proto=http', '198.51.100.7'],
    ['trusted hops after it', 'for=198.51.100.7 , for=10.1.2.3,for="[2001:db8:aaaa::9]"', '198.51.100.7'],
    ['a port', 'for="198.51.100.7:4711"', '198.51.100.7'],
    ['a port without quotes', 'for=198.51.100.7:4711', '198.51.100.7'],
    ['a port behind IPv6', 'for="[2001:db8::5]:4711"', '2001:db8:0:0::/64'],
    ['another word as a port', 'for="[2001:db8::5]:_web"', '2001:db8:0:0::/64'],
    ['escapes', 'for="198.51.100\\.7"', '198.51.100.7'],
    ['empty parts', ', for=198.51.100.7;, ;for=10.1.2.3;', '198.51.100.7'],
    ['a hop that is hidden', 'for=198.51.100.7, for=_hidden', PEER],
    ['a hop that is unknown', 'for=198.51.100.7, for=unknown, for=10.1.2.3', '10.1.2.3'],
    ['a hop that says nothing of it', 'for=198.51.100.7, proto=https', PEER],
    ['nothing', '', PEER],
    ['a quote that it opens', 'for="203.0.113.9, for=198.51.100.7', PEER],
    ['a quote that it opens before one of its proxy', 'for="203.0.113.9, for="198.51.100.7"', PEER],
    ['an escape before the comma', 'for="203.0.113.9\\", for=198.51.100.7', PEER],
    ['a parameter twice', 'for=203.0.113.9;for=198.51.100.7', PEER],
    ['no form at all', '198.51.100.7', PEER],
    ['blanks in the middle', 'for = 198.51.100.7', PEER],
    ['a long way', `${'for=203.0.113.9, '.repeat(200)}for=198.51.100.7`, '198.51.100.7'],
    ['more elements than a way has', `${','.repeat(300)}for=198.51.100.7`, PEER],
    ['more parameters than a way has', `${';'.repeat(300)}for=198.51.100.7`, PEER],
  ])('with %s', (_, elements, address) => {
    expect(addressOf({ peer: PEER, elements })).toBe(address);
  });

  test('cannot make its address another one by what it sends, in one header or in both', () => {
    const claims = string().filter((text) => !text.includes('\0'));
    assert(
      property(claims, claims, (made, also) => {
        const [elements, forwarded] = [`${made}, for=198.51.100.7`, `${also}, 198.51.100.7`];
        expect(['198.51.100.7', PEER]).toContain(addressOf({ peer: PEER, elements }));
        // Its proxy knows only one of the two headers, and hands on the other one.
        expect(['198.51.100.7', PEER]).toContain(addressOf({ peer: PEER, elements, forwarded: also }));
        expect(['198.51.100.7', PEER]).toContain(addressOf({ peer: PEER, elements: made, forwarded }));
        expect(['198.51.100.7', PEER]).toContain(addressOf({ peer: PEER, elements, forwarded }));
      }),
    );
  });

  test('is its proxy where the two headers disagree, and who they both name where they agree', () => {
    const forwarded = '203.0.113.9, 198.51.100.7';
    expect(addressOf({ peer: PEER, forwarded, elements: 'for=203.0.113.9' })).toBe(PEER);
    expect(addressOf({ peer: PEER, forwarded, elements: 'for=_hidden' })).toBe(PEER);
    expect(addressOf({ peer: PEER, forwarded: '', elements: 'for=198.51.100.7' })).toBe(PEER);
    expect(addressOf({ peer: PEER, forwarded, elements: 'for=198.51.100.7' })).toBe('198.51.100.7');
  });

  test('has an address whatever anybody sends', () => {
    assert(
      property(string({ unit: 'binary', maxLength: 200 }), (elements) => {
        expect(addressOf({ peer: PEER, elements })).toMatch(/^([\d.]+|[\da-f:]+::\/64)$/);
      }),
    );
  });

  test('is its peer address where that is not trusted', () => {
    expect(addressOf({ peer: '198.51.100.7', elements: 'for=203.0.113.9' })).toBe('198.51.100.7');
    expect(addressOf({ peer: PEER, elements: 'for=203.0.113.9', trusted: [] })).toBe(PEER);
  });
});

const schemeOf = (peer: string, said: Readonly<Record<string, string>>) => schemes(PROXIES)(peer, (name) => said[name]);

describe('the scheme by which a client came', () => {
  test.each([
    [{ 'x-forwarded-proto': 'https' }, 'https'],
    [{ 'x-forwarded-proto': 'HTTP' }, 'http'],
    [{ 'x-forwarded-proto': 'http, https' }, 'https'],
    [{ 'x-forwarded-proto': 'https,http' }, 'http'],
    [{ forwarded: 'for=1.2.3.4;proto=http, for=10.0.0.9;Proto="https"' }, 'https'],
    [{ forwarded: 'for=1.2.3.4;proto=https, for=10.0.0.9' }, undefined],
    [{ 'x-forwarded-proto': 'https', forwarded: 'proto=https' }, 'https'],
    [{ 'x-forwarded-proto': 'https', forwarded: 'for=1.2.3.4' }, 'https'],
    [{ 'x-forwarded-proto': 'https', forwarded: 'proto=http' }, undefined],
    [{ 'x-forwarded-proto': 'https', forwarded: '"' }, 'https'],
    [{ forwarded: `${','.repeat(300)}proto=https` }, undefined],
    [{ 'x-forwarded-proto': 'javascript' }, undefined],
    [{ 'x-forwarded-proto': 'https://evil.example/' }, undefined],
    [{ 'x-forwarded-proto': '' }, undefined],
    [{}, undefined],
  ])('by %j is %s, of a trusted proxy, and of nobody else', (said, scheme) => {
    expect(schemeOf(PEER, said)).toBe(scheme);
    expect(schemeOf('198.51.100.7', said)).toBeUndefined();
  });
});

const warnedOf = (requests: readonly (readonly [string | undefined, string])[]) => {
  const told: unknown[] = [];
  const look = warningOfStrays(PROXIES, { warn: (fields) => told.push(fields.network) });
  for (const [peer, header] of requests) look(peer, (name) => (name === header ? '203.0.113.9' : undefined));
  return told;
};

describe('a proxy that is not trusted', () => {
  test('is warned of once for each network, without its address', () => {
    const requests = [
      '172.17.0.2',
      '172.18.0.3',
      '::ffff:192.168.1.1',
      '127.0.0.1',
      '198.51.100.7',
      '198.51.100.8',
      'fd00::2',
    ];
    const seen = requests.map((peer, at) => [peer, at % 2 ? 'forwarded' : 'x-forwarded-for'] as const);
    expect(warnedOf([...seen, ...seen])).toEqual([
      '172.16.0.0/12',
      '192.168.0.0/16',
      '127.0.0.0/8',
      'public',
      'fc00::/7',
    ]);
  });

  test('is none where nothing is forwarded, or it is trusted', () => {
    expect(
      warnedOf([
        ['172.17.0.2', 'via'],
        [PEER, 'x-forwarded-for'],
        [undefined, 'x-forwarded-for'],
        ['', 'forwarded'],
      ]),
    ).toEqual([]);
  });
});
