import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Config } from '../../../config.ts';
import { about, type Finding } from './findings.ts';
import { isLoopback } from './name.ts';

const { good, poor, bad } = about('proxies');

type Given = Pick<Config, 'host' | 'adminHost' | 'adminPort' | 'publicUrl' | 'sessions' | 'trustedProxies'>;

/** Who forwards for whom, and who may connect. */
export function proxyFindings(config: Given): Finding[] {
  return [...trust(config), ...publicity(config), ...admin(config)];
}

function trust({ trustedProxies, host, publicUrl }: Given): Finding[] {
  const tooWide = trustedProxies.filter(isTooWide);
  if (tooWide.length > 0)
    return [
      bad(
        `TRUSTED_PROXIES trusts ${tooWide.join(', ')}: anybody there may say to be any client`,
        'Name the addresses of the balancer only',
      ),
    ];
  if (trustedProxies.length > 0) return [good(trusted(trustedProxies))];
  const oneClient = 'With a balancer in front all clients count as one: name its addresses in TRUSTED_PROXIES';
  if (publicUrl?.startsWith('https:'))
    return [poor('PUBLIC_URL is https, so something stands in front, and TRUSTED_PROXIES is not set', oneClient)];
  if (!isLoopback(host)) return [poor(`HOST is ${host} and TRUSTED_PROXIES is not set`, oneClient)];
  return [good(`nobody forwards: clients are on this machine (HOST is ${host})`)];
}

function trusted(ranges: readonly string[]): string {
  const own = Object.values(networkInterfaces()).flatMap((list = []) => list.map(({ address }) => address));
  const covered = own.filter((address) => covers(ranges, address));
  const here = covered.length > 0 ? `; of this machine: ${covered.join(', ')}` : '';
  return `TRUSTED_PROXIES trusts ${ranges.join(', ')}${here}`;
}

/** Shorter prefixes are of no one owner. */
const LEAST_BITS = { ipv4: 8, ipv6: 16 } as const;
/** All private use: RFC 4193. */
const PRIVATE_IPV6 = /^f[cd]/i;

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

function isTooWide(range: string): boolean {
  const [address = '', bits] = range.split('/');
  return bits !== undefined && Number(bits) < LEAST_BITS[familyOf(address)] && !PRIVATE_IPV6.test(address);
}

function covers(ranges: readonly string[], address: string): boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', bits] = range.split('/');
    list.addSubnet(network, Number(bits ?? (isIP(network) === 6 ? 128 : 32)), familyOf(network));
  }
  return list.check(address, familyOf(address));
}

function publicity({ sessions, publicUrl }: Given): Finding[] {
  if (!sessions || publicUrl !== undefined) return [];
  return [
    poor(
      'SESSIONS without PUBLIC_URL',
      'Where TLS ends before the gateway, it does not know which origin is its own: set PUBLIC_URL',
    ),
  ];
}

const isOpen = (host: string) => host === '0.0.0.0' || host === '::';

function admin({ adminHost, adminPort }: Given): Finding[] {
  if (adminPort === 0 || !isOpen(adminHost)) return [];
  const reach = `ADMIN_HOST is ${adminHost}: whoever reaches port ${adminPort} reads metrics and console`;
  return [poor(reach, 'Let a firewall or a network policy admit only those who watch')];
}
