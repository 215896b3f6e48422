/**
 * What has to be atomic, in Lua. The store has a life, which ends with its process: a store that comes back, empty or with what
 * it had saved some time ago, is another one. An account has one hash of versions: `e` holds its epoch, `l` the life in which it
 * was made, any other field the version of a tag. Whoever finds none of this life makes one, out of random text: what was
 * noted before never holds again.
 */

const COMMON = `
local function epochOf(hash, life)
  local known = redis.call('HMGET', hash, 'e', 'l')
  return known[2] == (redis.call('GET', life) or '') and known[1]
end
local function versionsOf(hash, epoch, tags)
  if #tags == 0 then return epoch end
  local found = redis.call('HMGET', hash, unpack(tags))
  for i = 1, #found do found[i] = found[i] or '0' end
  return epoch .. '.' .. table.concat(found, '.')
end
local function nowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function slice(from, to)
  local part = {}
  for i = from, to do part[#part + 1] = ARGV[i] end
  return part
end
local function live(key, ms)
  if redis.call('PTTL', key) < tonumber(ms) then redis.call('PEXPIRE', key, ms) end
end
`;

/**
 * KEYS: versions, life, hold, window, one copy for each place.
 * ARGV: new epoch, life of the versions, length of the window or 0; for each place: versions and time of the copy that is
 * there, number of tags, tags. → used, left, held; for each place: versions, asked at, value, age.
 */
const visit = `${COMMON}
local reply = { 0, 0, math.max(0, redis.call('PTTL', KEYS[3])) }
if ARGV[3] ~= '0' then
  reply[1] = redis.call('INCR', KEYS[4])
  if reply[1] == 1 then redis.call('PEXPIRE', KEYS[4], ARGV[3]) end
  reply[2] = redis.call('PTTL', KEYS[4])
end
if #KEYS == 4 then return reply end
local epoch = epochOf(KEYS[1], KEYS[2])
if not epoch then
  epoch = ARGV[1]
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'e', epoch, 'l', redis.call('GET', KEYS[2]) or '')
end
live(KEYS[1], ARGV[2])
local at = 4
for i = 5, #KEYS do
  local last = at + 2 + tonumber(ARGV[at + 2])
  local versions = versionsOf(KEYS[1], epoch, slice(at + 3, last))
  local copy = redis.call('HMGET', KEYS[i], 'v', 'a', 't')
  reply[#reply + 1] = versions
  if copy[1] ~= versions then
    reply[#reply + 1] = ''
    reply[#reply + 1] = ''
    reply[#reply + 1] = 0
  else
    local isThere = ARGV[at] == versions and ARGV[at + 1] == copy[2]
    reply[#reply + 1] = copy[2]
    reply[#reply + 1] = isThere and '' or redis.call('HGET', KEYS[i], 'd')
    reply[#reply + 1] = nowMs() - (copy[3] or 0)
  end
  at = last + 1
end
return reply`;

/** KEYS: versions, life, copy. ARGV: versions, asked at, value, how long it is kept, tags. */
const save = `${COMMON}
local epoch = epochOf(KEYS[1], KEYS[2])
if not epoch or versionsOf(KEYS[1], epoch, slice(5, #ARGV)) ~= ARGV[1] then return 0 end
local known = redis.call('HMGET', KEYS[3], 'v', 'a')
local now = nowMs()
-- One that was asked for in the future comes from a clock that is ahead, and keeps nobody out.
local askedAt = known[1] == ARGV[1] and tonumber(known[2]) or 0
if askedAt > tonumber(ARGV[2]) and askedAt < now + 1000 then return 0 end
redis.call('HSET', KEYS[3], 'v', ARGV[1], 'a', ARGV[2], 'd', ARGV[3], 't', now)
redis.call('PEXPIRE', KEYS[3], ARGV[4])
live(KEYS[1], ARGV[4])
return 1`;

/**
 * KEYS: versions. ARGV: new version, most tags, tags. Where nothing is kept there is nothing to make worthless; a store that is full
 * can still forget. */
const touch = `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local isAll = false
for i = 3, #ARGV do
  if ARGV[i] == '*' then isAll = true
  elseif type(redis.pcall('HSET', KEYS[1], ARGV[i], ARGV[1])) == 'table' then
    return redis.call('DEL', KEYS[1])
  end
end
if isAll or redis.call('HLEN', KEYS[1]) > tonumber(ARGV[2]) then
  local left = redis.call('PTTL', KEYS[1])
  local life = redis.call('HGET', KEYS[1], 'l')
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'e', ARGV[1], 'l', life)
  redis.call('PEXPIRE', KEYS[1], math.max(1, left))
end
return 1`;

/** KEYS: turn. ARGV: versions, instance, life. */
const takeTurn = `
local known = redis.call('HMGET', KEYS[1], 'v', 'i')
if known[1] == ARGV[1] and known[2] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'v', ARGV[1], 'i', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`;

/** KEYS: turn. ARGV: instance. */
const passTurn = `
if redis.call('HGET', KEYS[1], 'i') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`;

/** KEYS: hold. ARGV: ms. */
const hold = `
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], '1', 'PX', ARGV[1]) end
return 1`;

const WRITE = `
local function write()
  redis.call('HSET', KEYS[1], 'n', ARGV[1], 's', ARGV[2], 'd', ARGV[3], 'l', ARGV[4])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
local owner = redis.call('HGET', KEYS[1], 'n')
`;

/** KEYS: record, life of the store. ARGV: nonce, stage, value, life; the life that the instance knows. */
const claim = `${WRITE}
if redis.call('GET', KEYS[2]) ~= ARGV[5] then return { 'reborn' } end
if not owner then
  write()
  return { 'free' }
end
local known = redis.call('HMGET', KEYS[1], 's', 'd', 'l')
return { known[1], known[2], tonumber(known[3]) - redis.call('PTTL', KEYS[1]) }`;

/** KEYS: record. ARGV: nonce, stage, value, life. */
const advance = `${WRITE}
if owner ~= ARGV[1] then return 0 end
write()
return 1`;

/** KEYS: record. ARGV: nonce, stage, value, life. */
const settle = `${WRITE}
if owner and owner ~= ARGV[1] then return 0 end
write()
return 1`;

/** KEYS: record. ARGV: nonce. */
const release = `
if redis.call('HGET', KEYS[1], 'n') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

/**
 * KEYS: life of the store, peers, those of them who write again. ARGV: end of a new life's name, how long it lasts; name of the instance, the life in which it is to be
 * counted; how long a peer is; `writing` while the instance writes again, how long that is believed; how long a
 * silent peer is remembered, and after how long it is silent. → life, its age, peers, how many write again, share of its memory that
 * the store has used, how many are silent, what it does when it is full.
 */
const beat = `${COMMON}
local now = nowMs()
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local life = redis.call('GET', KEYS[1])
if not life or string.sub(life, 1, #run) ~= run then
  life = string.format('%s %.0f %s', run, now, ARGV[1])
  redis.call('SET', KEYS[1], life)
  redis.call('DEL', KEYS[2], KEYS[3]) -- who was there in another life has yet to answer in this one
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if life == ARGV[4] then redis.call('ZADD', KEYS[2], now, ARGV[3]) end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[8])
redis.call('PEXPIRE', KEYS[2], ARGV[8])
if ARGV[6] == 'writing' then redis.call('ZADD', KEYS[3], now, ARGV[3]) else redis.call('ZREM', KEYS[3], ARGV[3]) end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - ARGV[7])
redis.call('PEXPIRE', KEYS[3], ARGV[7])
local memory = redis.call('INFO', 'memory')
local most = tonumber(string.match(memory, 'maxmemory:(%d+)'))
local used = most > 0 and string.match(memory, 'used_memory:(%d+)') / most or 0
return {
  life, now - string.match(life, ' (%d+) '), redis.call('ZRANGEBYSCORE', KEYS[2], now - ARGV[5], '+inf'),
  redis.call('ZCARD', KEYS[3]), tostring(used), redis.call('ZCOUNT', KEYS[2], '-inf', now - ARGV[9]),
  most > 0 and string.match(memory, 'maxmemory_policy:(%S+)') or ''
}`;

/** KEYS: peers. ARGV: name of the instance. */
const leave = `return redis.call('ZREM', KEYS[1], ARGV[1])`;

export const SCRIPTS = {
  visit,
  save,
  touch,
  takeTurn,
  passTurn,
  hold,
  claim,
  advance,
  settle,
  release,
  beat,
  leave,
} as const;

export type ScriptName = keyof typeof SCRIPTS;
