import type { Logger } from '../../../core/logger.ts';
import { canonical, type Header, trustIn } from './address.ts';

const SEVERAL = 1_000;

/**
 * Warns of a proxy that is not trusted, once for each of the networks that it may be in. Its address is not told: it may be a
 * client's.
 */
export function warningOfStrays(trusted: readonly string[], logger: Pick<Logger, 'warn'>) {
  const isTrusted = trustIn(trusted);
  const seen = new Set<string>();
  const told = new Set<string>();
  return (peer: string | undefined, header: Header): void => {
    if (peer === undefined || seen.size >= SEVERAL || seen.has(peer)) return;
    const isForwarded = header('x-forwarded-for') !== undefined || header('forwarded') !== undefined;
    const address = isForwarded ? canonical(peer) : undefined;
    if (address === undefined) return;
    seen.add(peer);
    const network = networkOf(address);
    if (isTrusted(address) || told.has(network)) return;
    told.add(network);
    logger.warn({ network }, STRAY);
  };
}

const STRAY = 'a proxy says for whom it asks, and is not in TRUSTED_PROXIES: all who come by it count as one client';

const NETWORKS = [
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '169.254.0.0/16',
  '::1/128',
  'fc00::/7',
  'fe80::/10',
];
const isInNetwork = NETWORKS.map((range) => [range, trustIn([range])] as const);

const networkOf = (address: string) => isInNetwork.find(([, isIn]) => isIn(address))?.[0] ?? 'public';
