import { isIP } from 'node:net';
import * as z from 'zod/mini';
import { addresses, readAs } from '../../config.ts';
import { rangesOf } from './server/address.ts';

/** Whether an entry means this host. A name is in lower case; an address of IPv6 has no brackets. */
type Matches = (host: string) => boolean;

const BRACKETS = /^\[(?<ipv6>[^\]]*:[^\]]*)\](?=\/|$)/;
const WITH_PORT = /^(?<hosts>.+?)(?::(?<port>[1-9]\d{0,4}))?$/;
/** A name whose last part is a number would be an address. */
const NAME = /^(?:\*?\.)?(?<name>(?:[\w-]+\.)*(?!\d+\.?$)[\w-]+)\.?$/;

function inRange(text: string): Matches | undefined {
  const range = text.replace(BRACKETS, '$<ipv6>');
  if (!addresses.safeParse(range).success) return undefined;
  const isIn = rangesOf([range]);
  return (host) => isIP(host) !== 0 && isIn(host);
}

/** A host with all below it. A dot before it means the same, as curl has it. */
function below(text: string): Matches | undefined {
  const name = NAME.exec(text)?.groups?.['name']?.toLowerCase();
  return name === undefined ? undefined : (host) => host === name || host.endsWith(`.${name}`);
}

/** Undefined if that is no entry. */
function readEntry(entry: string): ((host: string, port: number) => boolean) | undefined {
  const whole = inRange(entry); // an address of IPv6 ends as if it had a port
  if (whole) return whole;
  const { hosts = '', port } = WITH_PORT.exec(entry)?.groups ?? {};
  const matches = hosts === '*' ? () => true : (inRange(hosts) ?? below(hosts));
  if (port === undefined || !matches) return matches;
  return Number(port) > 65_535 ? undefined : (host, itsPort) => itsPort === Number(port) && matches(host);
}

const entriesIn = (text: string) => text.split(/[,\s]+/).filter((entry) => entry !== '');

const expected = (text: string) => {
  const at = entriesIn(text).findIndex((entry) => !readEntry(entry)) + 1;
  return `entry ${at} to be *, a host, a .suffix, an IP address or a CIDR, each with or without a port`;
};

/** Whether an upstream is reached without its proxy. */
export const noProxy = z.prefault(
  readAs(expected, (text) => {
    const entries = entriesIn(text).map(readEntry);
    if (!entries.every((entry) => entry !== undefined)) return undefined;
    return ({ hostname, port, protocol }: URL) => {
      const host = hostname.replace(BRACKETS, '$<ipv6>').replace(/\.$/, '');
      const itsPort = Number(port || (protocol === 'https:' ? 443 : 80));
      return entries.some((means) => means(host, itsPort));
    };
  }),
  '',
);
