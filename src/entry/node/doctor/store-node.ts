import type { Redis } from 'ioredis';
import type { StoreAddress } from '../redis/address.ts';
import { fieldIn, troublesOf } from '../redis/client.ts';
import { about, type Finding } from './findings.ts';

const { good, poor, bad } = about('store');

const TRIES = 4;
const FAR_MS = 20;
/** How long a read waits for the store. */
const TOO_FAR_MS = 190;
const MOST_SKEW_MS = 1_000;
const OLDEST = 7;
const FULL = 0.75;

/** What one node says of itself. */
export async function nodeFindings(node: Redis, kind: StoreAddress['kind'], channel: string): Promise<Finding[]> {
  const { host, port } = node.options;
  const { ms, aheadMs } = await timesOf(node);
  const [info, troubles] = await Promise.all([node.info().catch(() => undefined), troublesOf(node, channel)]);
  return [
    distance(ms, `${host}:${port}`),
    ...clock(aheadMs),
    ...(info === undefined ? [HIDDEN] : [...version(info), ...memory(info), ...replicas(info, kind)]),
    ...troubles.flatMap((trouble) => TROUBLES[trouble] ?? []),
  ];
}

/** The least of several round trips, and what the node's clock was ahead of ours in that one. */
async function timesOf(node: Redis): Promise<{ readonly ms: number; readonly aheadMs: number }> {
  const times: { ms: number; aheadMs: number }[] = [];
  for (let tried = 0; tried < TRIES; tried++) {
    const [startedAt, startedWall] = [performance.now(), Date.now()];
    const [seconds, micros] = await node.time();
    const ms = performance.now() - startedAt;
    times.push({ ms, aheadMs: Number(seconds) * 1_000 + Number(micros) / 1_000 - (startedWall + ms / 2) });
  }
  return times.toSorted((one, other) => one.ms - other.ms)[0] ?? { ms: 0, aheadMs: 0 };
}

function distance(ms: number, at: string): Finding {
  const text = `${at} answers in ${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms <= FAR_MS) return good(text);
  if (ms <= TOO_FAR_MS) return poor(text, 'Every miss and every write takes that several times: run both at one place');
  return bad(text, `A read waits ${TOO_FAR_MS} ms for it at most, so nothing would be answered from the cache`);
}

function clock(aheadMs: number): Finding[] {
  if (Math.abs(aheadMs) <= MOST_SKEW_MS) return [];
  const words = `${(Math.abs(aheadMs) / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} ours`;
  return [poor(`its clock is ${words}`, 'Let both machines take their time from NTP')];
}

const HIDDEN = poor(
  'version, memory and persistence are not known: INFO is refused',
  'Add +info to the ACL of its user',
);

function version(info: string): Finding[] {
  const [compatible, valkey] = [fieldIn(info, 'redis_version') ?? '', fieldIn(info, 'valkey_version')];
  const text = valkey === undefined ? `Redis ${compatible}` : `Valkey ${valkey}`;
  return [
    Number.parseInt(compatible, 10) < OLDEST
      ? bad(`${text} is too old`, 'It has to be Redis 7.0 or later, or Valkey')
      : good(text),
  ];
}

function memory(info: string): Finding[] {
  const [used, most] = [Number(fieldIn(info, 'used_memory')), Number(fieldIn(info, 'maxmemory'))];
  if (!(most > 0) || used <= FULL * most) return [];
  const part = Math.round((100 * used) / most);
  return [
    poor(
      `its memory is ${part} % full`,
      'From 75 % on no new copies are kept, and at 100 % writes are refused: raise maxmemory',
    ),
  ];
}

function replicas(info: string, kind: StoreAddress['kind']): Finding[] {
  if (kind === 'one' || Number(fieldIn(info, 'connected_slaves')) > 0) return [];
  return [poor('this primary has no replica', 'If it is lost, so are records: a purchase may then be sent again')];
}

/** What `troublesOf` calls them. `NO_CHANNEL` is told among the rights. */
const TROUBLES: Readonly<Record<string, Finding>> = {
  EVICTS: bad(
    'it evicts: a record that is evicted is a write that may be sent twice',
    'Set maxmemory-policy noeviction',
  ),
  NOT_PERSISTENT: bad('it keeps nothing on disk: records end with its process', 'Set appendonly yes'),
  REPLICA_WRITABLE: bad('its replicas take writes', 'Set replica-read-only yes'),
  FEW_MIN_REPLICAS: poor(
    'min-replicas-to-write is less than the number of replicas: a primary that is cut off goes on taking purchases',
    'Set it to that number, and min-replicas-max-lag to 2',
  ),
};
