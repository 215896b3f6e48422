import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { COPY_HEAD, FIRST_REV, REV } from '../../../store/sealed.ts';
import { isReply } from './troubles.ts';

/** Raised where instances of an earlier version would read what is stored in another way. */
export const PROTOCOL = 3;

export const PREFIX = `p${PROTOCOL}:`;
export const ID = `${PREFIX}id`;
export const TOKEN = `${PREFIX}token`;
/** Its field `v` is the protocol of the instances that use the store. Version 0.2 reads it too, and refuses a later one. */
export const USED_BY = 'portico:{0}:id';

/** So long after a HELLO was sent that was answered, nothing is relied upon. */
export const SILENCE_MS = 2_500;

/**
 * Which store this is, since when, what time it has, and how full it is. It writes: so a replica refuses it, and a primary
 * without its replicas. KEYS: id, token, protocol. ARGV: the caller's token, a new one.
 *
 * Every version reads the key of the protocol at least once a second, so it is idle when none is running. Who finds another
 * version forgets its own id: until that key is idle it is not read here, since reading it ends its being idle. It is written
 * last: else the next HELLO would take what one has left that was refused half-way for another version.
 */
const HELLO = `#!lua flags=allow-oom
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'run', 'token', 'since', 'past', 'heard')
local idle = redis.pcall('OBJECT', 'IDLETIME', KEYS[3])
if not known[2] or redis.pcall('HGET', KEYS[3], 'v') ~= '${PROTOCOL}' then
  redis.call('DEL', KEYS[1])
  if type(idle) == 'number' and idle < 5 then
    return redis.error_reply('PROTOCOL The store is used by gateways of another version; this one has protocol ${PROTOCOL}.')
  end
  redis.call('DEL', KEYS[3])
  known = {}
end
local own, run, token, past = ARGV[1], string.match(redis.call('INFO', 'server'), 'run_id:(%x+)'), known[2], known[4] or ''
local isOther = own ~= '' and own ~= token and not string.find(past, own, 1, true)
local isSame = known[1] == run and not isOther and redis.call('GET', KEYS[2]) == token
local since = isSame and math.min(tonumber(known[3]), now) or now
if not isSame or (own == '' and now - (tonumber(known[5]) or 0) > ${SILENCE_MS}) then
  past = string.sub((token or '') .. ' ' .. past, 1, 1300)
  token = ARGV[2]
  redis.call('SET', KEYS[2], token)
  redis.call('HSET', KEYS[1], 'run', run, 'token', token, 'past', past)
end
redis.call('HSET', KEYS[1], 'heard', now, 'since', since)
local memory = redis.call('INFO', 'memory')
local most = tonumber(string.match(memory, '\\nmaxmemory:(%d+)'))
local full = most > 0 and string.match(memory, '\\nused_memory:(%d+)') / most or 0
if not known[2] then redis.call('HSET', KEYS[3], 'v', '${PROTOCOL}') end
return { token, since, now, tostring(full) }`;

/**
 * A note in the place of the one that was seen, in the store that is meant, and with it what becomes of a record. It ends no
 * sooner than the one before, under which copies may have been kept. KEYS: id, note, record. ARGV: token, head of the note
 * that was seen, note and its life, record and its life.
 */
const SWAP = `#!lua flags=allow-oom
local known = redis.call('HMGET', KEYS[1], 'token', 'run')
if known[1] ~= ARGV[1] or known[2] ~= string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') then return 'another' end
if redis.call('GETRANGE', KEYS[2], 0, ${REV - 1}) ~= ARGV[2] then return 'other' end
redis.call('SET', KEYS[2], ARGV[3], 'PX', math.max(ARGV[4], redis.call('PTTL', KEYS[2])))
if ARGV[6] then redis.call('SET', KEYS[3], ARGV[5], 'PX', ARGV[6]) elseif KEYS[3] then redis.call('DEL', KEYS[3]) end
return 'done'`;

/**
 * A copy, where the note is the one that was seen (none counts as the first one, which is made then), unless there is one of
 * the same version that was asked for later. The note outlives the copy, or the copy would be valid again some day. KEYS:
 * note, copy. ARGV: head of the note that was seen, first note and its life, copy and its life.
 */
const KEEP = `#!lua
local head = redis.call('GETRANGE', KEYS[1], 0, ${REV - 1})
if (head == '' and '${FIRST_REV}' or head) ~= ARGV[1] then return 0 end
if head == '' then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
elseif redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
if not KEYS[2] then return 1 end
local before = redis.call('GETRANGE', KEYS[2], 0, ${COPY_HEAD - 1})
if #before == ${COPY_HEAD} then
  local version, askedAt = struct.unpack('>c16d', before)
  local own, ownAskedAt = struct.unpack('>c16d', ARGV[4])
  local later = askedAt - ownAskedAt
  if version == own and later > 0 and later < 60000 then return 1 end
end
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
return 1`;

const SCRIPTS = { hello: HELLO, swap: SWAP, keep: KEEP } as const;
export type ScriptName = keyof typeof SCRIPTS;

const hashOf = (lua: string) => createHash('sha1').update(lua).digest('hex');
const HASHES = { hello: hashOf(HELLO), swap: hashOf(SWAP), keep: hashOf(KEEP) } as const;

export type Argument = string | number | Buffer;

/** Calls a script by its hash, and by its text where the node does not know it. */
export async function run(
  client: Redis,
  name: ScriptName,
  keys: readonly string[],
  args: readonly Argument[],
): Promise<unknown> {
  const rest = [keys.length, ...keys, ...args];
  try {
    return await client.callBuffer('EVALSHA', [HASHES[name], ...rest]);
  } catch (error) {
    if (!isReply(error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return client.callBuffer('EVAL', [SCRIPTS[name], ...rest]);
  }
}
