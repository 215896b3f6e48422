import { MAX_COOLDOWN_MS, MAX_HELD_BYTES, MAX_TAGS } from '../../../store/shared/engine.ts';

export const NOW = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Epoch of an account's sessions, of which earlier releases had random text. */
export const EPOCH_OF = `
local function epochOf(stored) return stored and (tonumber(stored) or 1) or 0 end
local function sinceOf(instant) return tonumber(instant) and math.max(0, now - instant) end
`;

/** Raised where instances of an earlier version would read what scripts write in another way, or would not announce it. */
const PROTOCOL = 2;

/** The first characters of a token, the same for all shares of a node. */
export const NODE_LENGTH = 8;

/**
 * What all scripts but `session` begin with. They refuse to run on a replica and on a primary without its replicas, since
 * they may write; `allow-oom` lets them run where memory is full, and they look at the memory themselves.
 *
 * KEYS: id of the share; account; then what the script names. The id is a hash: `id`, a line of what is known of it, `n`
 * number of changes so far, `v` version of the protocol. The account is one hash:
 * `i` token of the id under which its versions were made, `e` epoch, `t<tag>` version of a tag, `m` marks (packed),
 * `c` end of the cooldown, `s<id>` until when a session is remembered as revoked, `x` epoch of the sessions, `X` when
 * something was last revoked.
 * A copy is a short header (version, asked at, kept at, fresh until, packed), then its value. A record is a line
 * (nonce, until when it is under way or 0, when its write was announced), then its value.
 *
 * The clock may be set back. What is from later than now, or ends later than it could, was written before that: a copy is
 * none, a window, lease or cooldown is over, and a mark stands for its whole time from now on.
 *
 * ARGV: random text for new versions; the token of the id that the caller saw last, empty where it saw none, `?`
 * where there may have been another meanwhile; how long ago that was; how long a replaced store is not relied on; the
 * channel on which changes are published, empty where they are not; the call in JSON, as `store/shared/engine.ts` has it; the
 * value of its copy or record. Replies: the token of the id; the number of changes, this one included; the reply in JSON; the
 * values that belong to it.
 */
export const IDENTITY = `#!lua flags=allow-oom
${NOW}
local seed, known, ago, window, channel, asked, value = unpack(ARGV)
local knownAt = now - ago
window = tonumber(window)

local replication = redis.call('INFO', 'replication')
local function hash(info, field) -- 40 digits; searching a pattern takes longer than the rest of a script
  local _, at = string.find(info, field .. ':', 1, true)
  return string.sub(info, at + 1, at + 40)
end
local line = hash(replication, 'master_replid')
local stored = redis.pcall('HMGET', KEYS[1], 'id', 'n', 'v')
-- Text, of an earlier version: it is none. An instance of that version that still runs cannot read the hash in its place, so
-- it has no store: it would change things without announcing them.
if stored.err then
  redis.call('DEL', KEYS[1])
  stored = {}
end
local id, number, protocol = stored[1] or '', tonumber(stored[2] or 0), tonumber(stored[3] or 0)
if protocol > ${PROTOCOL} then
  return redis.error_reply('PROTOCOL The store is used by gateways of a later version (protocol ' .. protocol
    .. ', this one has ${PROTOCOL}): upgrade this gateway.')
end
local run, idLine, token, since, past = string.match(id, '^(%S+) (%S+) (%S+) (%d+) ?(.*)$')
since = tonumber(since)
local function another(from, before)
  token, since, past = string.sub(run, 1, ${NODE_LENGTH}) .. seed, from, before -- tokens show which shares are on one node
end
-- Each primary begins a line of replication when it starts, is promoted, or gets its first replica. In the last case it is
-- the same, and remembers no other line.
if idLine ~= line or not string.find(replication, 'role:master', 1, true) then
  local server, idRun = redis.call('INFO', 'server'), run
  run = hash(server, 'run_id')
  if run ~= idRun or not string.find(replication, 'master_replid2:0+%s') then
    local isOld = string.match(server, 'uptime_in_seconds:(%-?%d+)') * 1000 > window
    another(id == '' and known == '' and isOld and 0 or now, '')
  end
end
-- The caller has seen another store, unless this one had that token before.
if known ~= '' and known ~= token and since < knownAt and not string.find(past, known, 1, true) then
  another(knownAt, string.sub(token .. ' ' .. past, 1, 250))
end
since = math.min(since, now) -- the clock was set back
local renewed = run .. ' ' .. line .. ' ' .. token .. ' ' .. since .. ' ' .. past
if renewed ~= id or protocol < ${PROTOCOL} then redis.call('HSET', KEYS[1], 'id', renewed, 'v', ${PROTOCOL}) end
`;

export const ACCOUNT = `${IDENTITY}${EPOCH_OF}
local HEADER, HEADER_BYTES = '>c16I6I6I6', 34
local isOther = now - since < window
local account = KEYS[2]
asked = cjson.decode(asked)
local made, epoch, packed, cooldown = unpack(redis.call('HMGET', account, 'i', 'e', 'm', 'c'))
if made ~= token then epoch = false end
cooldown = math.max(0, (tonumber(cooldown) or 0) - now)
if cooldown > ${MAX_COOLDOWN_MS} then cooldown = 0 end

local life = 0
local function keep(ms) life = math.max(life, ms) end
-- Whether the marks, versions or revoked sessions of the account, or the epoch of these, differ from what others may know.
local isChange = false
local function answer(reply, ...)
  if life > 0 and redis.call('PTTL', account) < life then redis.call('PEXPIRE', account, math.ceil(life)) end
  if isChange and channel ~= '' then
    number = number + 1
    redis.call('HSET', KEYS[1], 'n', number)
    redis.pcall('PUBLISH', channel, number .. ' ' .. token .. ' ' .. string.match(account, ':a:(.*)$')) -- the user may not
  end
  return { token, number, cjson.encode(reply), ... }
end

local function fieldsOf(hash, kind)
  local fields = {}
  for _, field in ipairs(redis.call('HKEYS', hash)) do
    if string.sub(field, 1, 1) == kind then fields[#fields + 1] = field end
  end
  return fields
end
local function renewAll()
  local tags = fieldsOf(account, 't')
  if #tags > 0 then redis.call('HDEL', account, unpack(tags)) end
  epoch = seed
  redis.call('HSET', account, 'i', token, 'e', epoch)
  keep(120000) -- without copies an account is soon forgotten
end
-- Without an epoch there are no versions; they are made when one is asked for.
local function renew(tags)
  if not epoch then return end
  for _, tag in ipairs(tags) do
    if tag == '*' then return renewAll() end
    redis.call('HSET', account, 't' .. tag, seed)
  end
  if redis.call('HLEN', account) > ${MAX_TAGS} and #fieldsOf(account, 't') > ${MAX_TAGS} then renewAll() end
end
local function versionOf(tags)
  local names = {}
  for i, tag in ipairs(tags) do names[i] = 't' .. tag end
  local found = #names > 0 and redis.call('HMGET', account, unpack(names)) or {}
  for i = 1, #names do found[i] = found[i] or '0' end
  return string.sub(redis.sha1hex(epoch .. '.' .. table.concat(found, '.')), 1, 16)
end

-- A mark: nonce, state (w: under way, u: unknown), until when it is under way, until when it stands, purchase,
-- whether it has a key (1 or 0), tags, when it was set.
local NONCE, STATE, BUSY, STANDS, PURCHASE, KEY, TAGS, SET = 1, 2, 3, 4, 5, 6, 7, 8
local marks = packed and cmsgpack.unpack(packed) or {}
for _, mark in ipairs(marks) do
  local ahead = (mark[SET] or now) - now
  if ahead > 0 then
    mark[BUSY], mark[STANDS], mark[SET], packed = mark[BUSY] - ahead, mark[STANDS] - ahead, now, 'old'
  end
end
local function writeMarks()
  if #marks == 0 then return redis.call('HDEL', account, 'm') end
  redis.call('HSET', account, 'm', cmsgpack.pack(marks))
  for _, mark in ipairs(marks) do keep(mark[STANDS] - now) end
end
local function without(isOver)
  local left, over = {}, {}
  for _, mark in ipairs(marks) do
    local part = isOver(mark) and over or left
    part[#part + 1] = mark
  end
  marks = left
  return over
end
for _, mark in ipairs(packed and without(function(mark) return mark[STANDS] <= now end) or {}) do
  renew(mark[TAGS])
  packed = 'old'
end
if packed == 'old' then writeMarks() end
local function setMark(mark)
  without(function(other) return other[NONCE] == mark[NONCE] end)
  marks[#marks + 1] = mark
  writeMarks()
end
local function markOf(nonce)
  for _, mark in ipairs(marks) do
    if mark[NONCE] == nonce then return mark end
  end
end
local function isMarked(tags)
  for _, mark in ipairs(marks) do
    for _, hidden in ipairs(mark[TAGS]) do
      if hidden == '*' then return true end
      for _, tag in ipairs(tags) do
        if tag == hidden then return true end
      end
    end
  end
  return false
end

local function isUsedUp(window, use) return window and use.used > window.limit end
-- The epoch of all is at least the session's, and kept while sessions are used, which they are every seven days.
local function sessionOf(id, least, life)
  local revoked, stored, changedAt = unpack(redis.call('HMGET', account, 's' .. id, 'x', 'X'))
  local epochOfAll = math.max(epochOf(stored), least or 0)
  if epochOfAll > epochOf(stored) then
    isChange, changedAt = true, now
    redis.call('HSET', account, 'x', epochOfAll, 'X', now)
  end
  if epochOfAll > 0 and redis.call('PTTL', account) < life / 2 then keep(life) end
  return { isRevoked = revoked ~= false, epoch = epochOfAll, sinceMs = sinceOf(changedAt) }
end
local function headerOf(copy)
  local header = redis.call('GETRANGE', copy, 0, HEADER_BYTES - 1)
  if header ~= '' then return struct.unpack(HEADER, header) end
end
-- The part of the memory that is used, and what one account may hold of it.
local function memory()
  local memory = redis.call('INFO', 'memory')
  local most = tonumber(string.match(memory, 'maxmemory:(%d+)'))
  if most == 0 then return 0, ${MAX_HELD_BYTES} end
  return string.match(memory, 'used_memory:(%d+)') / most, most / 16
end
`;
