import { IncomingMessage } from 'node:http';
import { BlockList, isIP, SocketAddress } from 'node:net';
import { clientAt } from '../../../core/address.ts';

/** The name of all clients without a usable address: together they count as one client. */
const UNKNOWN = 'unknown';

const MAPPED_IPV4 = '::ffff:';
const WITH_PORT = /^(?:\[(?<ipv6>[^\]]+)\](?::[\w.-]+)?|(?<ipv4>[\d.]+):[\w.-]+)$/;

/** Reads a header of the request, by its name in small letters. */
type Header = (name: string) => string | undefined;

/** Proxies whose word counts: their CIDRs and addresses. */
export class Proxies {
  readonly #trust: (address: string) => boolean;

  constructor(ranges: readonly string[]) {
    this.#trust = rangesOf(ranges);
  }

  /** Tells clients apart. `X-Forwarded-For` is read from its end, up to the first address that is not trusted. */
  addressOf(peer: string | undefined, header: Header): string {
    let address = canonical(peer);
    if (address === undefined) return UNKNOWN;
    if (!this.#trust(address)) return clientAt(address);
    const hops = header('x-forwarded-for')?.split(',') ?? [];
    while (this.#trust(address)) {
      const hop = canonical(withoutPort(hops.pop() ?? ''));
      if (hop === undefined) break;
      address = hop;
    }
    return clientAt(address);
  }

  /** The scheme by which a client has come to a trusted proxy, as that one says; undefined where nobody trusted says it. */
  schemeOf(peer: string | undefined, header: Header): string | undefined {
    const address = canonical(peer);
    if (address === undefined || !this.#trust(address)) return undefined;
    const scheme = header('x-forwarded-proto')?.split(',').at(-1)?.trim().toLowerCase();
    return scheme === 'http' || scheme === 'https' ? scheme : undefined;
  }
}

/** Whether an address is in one of these, which are addresses and CIDRs. */
export function rangesOf(ranges: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    if (bits === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(bits), familyOf(address));
  }
  return (address) => ranges.length > 0 && list.check(address, familyOf(address));
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** The address at the other end of the connection, from what @hono/node-server passes with a request. */
export const peerIn = (env: object): string | undefined =>
  'incoming' in env && env.incoming instanceof IncomingMessage ? env.incoming.socket.remoteAddress : undefined;

/** Some proxies add the port, and some write another word instead of it. */
function withoutPort(hop: string): string {
  const { ipv4, ipv6 } = WITH_PORT.exec(hop.trim())?.groups ?? {};
  return ipv4 ?? ipv6 ?? hop.trim();
}

/** The host and port of a server that listens there. */
export const hostAt = (address: string, port: number): string =>
  `${address.includes(':') ? `[${address}]` : address}:${port}`;

/** Undefined if the text is no address. An IPv4-mapped IPv6 address becomes the IPv4 address. */
export function canonical(text = ''): string | undefined {
  const kind = isIP(text);
  if (kind !== 6) return kind === 4 ? text : undefined;
  const [address = ''] = text.split('%', 1); // a zone says which interface, not who
  const { address: shortest } = new SocketAddress({ address, family: 'ipv6' });
  return shortest.startsWith(MAPPED_IPV4) && shortest.includes('.') ? shortest.slice(MAPPED_IPV4.length) : shortest;
}
