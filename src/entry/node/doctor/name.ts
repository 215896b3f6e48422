import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { about, codeOf, type Finding } from './findings.ts';

const { good, poor, bad } = about('upstream');

const LONGEST_MS = 4_000;
const SLOW_MS = 500;

/** A name or an address, an IPv6 one without its brackets. */
export const hostIn = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '');

/** Whether a host, or the address that it has, is this machine's own. */
export const isLoopback = (host: string): boolean => host === 'localhost' || /^(::ffff:)?127\.|^::1$/.test(host);

/** Whether the name of the upstream has addresses. */
export async function nameFindings(upstream: URL): Promise<Finding[]> {
  const host = hostIn(upstream);
  if (isIP(host)) return [];
  const startedAt = performance.now();
  const found = await Promise.race([lookup(host, { all: true }).catch(codeOf), sleep(LONGEST_MS, 'no answer')]);
  const ms = Math.round(performance.now() - startedAt);
  if (typeof found === 'string')
    return [bad(`no address for ${host} (${found})`, 'Look at UPSTREAM_BASE_URL, and at the resolver of this machine')];
  const text = `${host} is ${found.map(({ address }) => address).join(', ')} (DNS took ${ms} ms)`;
  return [
    ms > SLOW_MS
      ? poor(text, 'Each new connection waits for that: use a nearer resolver, or one that remembers')
      : good(text),
  ];
}
