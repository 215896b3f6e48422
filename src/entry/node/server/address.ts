import { BlockList, isIP, type Socket, SocketAddress } from 'node:net';
import { clientAt } from '../../../core/address.ts';
import { forwardedIn } from './forwarded.ts';

/** For all clients without a usable address: together they count as one client. */
const UNKNOWN = 'unknown';

const MAPPED_IPV4 = '::ffff:';
const WITH_PORT = /^(?:\[(?<ipv6>[^\]]+)\](?::[\w.-]+)?|(?<ipv4>[\d.]+):[\w.-]+)$/;

/** Reads a header of the request, by its name in small letters. */
export type Header = (name: string) => string | undefined;

/**
 * Tells clients apart by their address. `X-Forwarded-For` and `Forwarded` are read from their end, up to the first address that
 * is not `trusted`, which are CIDRs and addresses. A client may have sent the one that its proxy does not know: where the two
 * disagree neither is believed.
 */
export function addresses(trusted: readonly string[]): (peer: string | undefined, header: Header) => string {
  if (trusted.length === 0) return (peer = '') => clientOf(canonical(peer));
  const isTrusted = trustIn(trusted);
  const before = (own: string, hops: (string | undefined)[]): string => {
    let address = own;
    while (isTrusted(address)) {
      const hop = canonical(withoutPort(hops.pop() ?? ''));
      if (hop === undefined) break;
      address = hop;
    }
    return address;
  };
  return (peer = '', header) => {
    const own = canonical(peer);
    if (own === undefined || !isTrusted(own)) return clientOf(own);
    const list = header('x-forwarded-for')?.split(',');
    const elements = forwardedIn(header('forwarded'))?.map((hop) => hop.get('for'));
    return clientOf(agreed([list, elements].map((hops) => hops && before(own, hops))) ?? own);
  };
}

function schemeIn(said = ''): string | undefined {
  const scheme = said.trim().toLowerCase();
  return scheme === 'http' || scheme === 'https' ? scheme : undefined;
}

/** The scheme by which a client has come to a trusted proxy, as that one says; undefined where nobody trusted says it. */
export function schemes(trusted: readonly string[]): (peer: string | undefined, header: Header) => string | undefined {
  const isTrusted = trustIn(trusted);
  return (peer = '', header) => {
    const own = canonical(peer);
    if (own === undefined || !isTrusted(own)) return undefined;
    const said = header('x-forwarded-proto')?.split(',').at(-1);
    const element = forwardedIn(header('forwarded'))?.at(-1);
    return agreed([said, element?.get('proto')].map(schemeIn));
  };
}

/** What all say who say anything. */
function agreed(claims: readonly (string | undefined)[]): string | undefined {
  const [one, ...others] = claims.filter((claim) => claim !== undefined);
  return others.every((other) => other === one) ? one : undefined;
}

/** Whose connection it is. */
export const peerOf = ({ remoteAddress = '' }: Socket): string => clientOf(canonical(remoteAddress));

/** Tells which connections are those of a trusted proxy. */
export function proxies(trusted: readonly string[]): (socket: Socket) => boolean {
  const isTrusted = trustIn(trusted);
  return ({ remoteAddress = '' }) => {
    const address = canonical(remoteAddress);
    return address !== undefined && isTrusted(address);
  };
}

export function trustIn(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    if (bits === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(bits), familyOf(address));
  }
  return (address) => list.check(address, familyOf(address));
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** Some proxies add the port, and some write another word instead of it. */
function withoutPort(hop: string): string {
  const { ipv4, ipv6 } = WITH_PORT.exec(hop.trim())?.groups ?? {};
  return ipv4 ?? ipv6 ?? hop.trim();
}

/** Undefined if the text is no address. An IPv4-mapped IPv6 address becomes the IPv4 address. */
export function canonical(text: string): string | undefined {
  const kind = isIP(text);
  if (kind !== 6) return kind === 4 ? text : undefined;
  const [address = ''] = text.split('%', 1); // a zone says which interface, not who
  const { address: shortest } = new SocketAddress({ address, family: 'ipv6' });
  return shortest.startsWith(MAPPED_IPV4) && shortest.includes('.') ? shortest.slice(MAPPED_IPV4.length) : shortest;
}

const clientOf = (address: string | undefined) => (address === undefined ? UNKNOWN : clientAt(address));
