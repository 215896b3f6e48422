import { LEASE_MS, MAX_COPIES, MAX_LEASES } from '../../../store/shared/engine.ts';
import { SESSION_MS } from '../../../store/store.ts';
import { HELD_COPIES, LEASE, setUse, useOf } from './hashes.ts';
import {
  accountOf,
  END,
  EPOCH_OF,
  HEADER,
  hiddenOf,
  IDENTITY,
  IS_HIDDEN,
  MEMORY,
  prolong,
  SESSION_OF,
  VERSION,
  VERSIONS,
} from './lua.ts';

/** Of the account, those that an instance asks for. */
const FIELDS = ', unpack(ARGV, fields)';

/**
 * KEYS: leases, windows, copies. ARGV: field, length and limit of the window, how many to count and how many in advance; id and
 * epoch of the session; for each key its name, the number of its tags, version, instant and freshness of the instance's own
 * copy, the lease that it wants, and the one it waits for; fields of the account: those of the session, those of the tags.
 * Replies: how many keys were looked up; now; cooldown; use, time left and advance of the window; whether the session is
 * revoked, epoch, since when; for each key its version, lease, instant and age of the copy, and its value where the instance
 * does not have it.
 */
export const snapshot = `${IDENTITY}
local FIRST, EACH = 13, 7
local count = #KEYS - 4
local fields = FIRST + EACH * count
local windowName, windowMs, limit, counted, wanted, session, sessionEpoch = unpack(ARGV, 6, 12)
local leases, windows = KEYS[3], KEYS[4]
${accountOf(FIELDS)}${hiddenOf(FIELDS)}
-- With the room that one key takes: a table that grows is made anew.
local reply = {
  token, number, 0, now, cooldown, false, false, false, false, false, false,
  false, false, false, false, false,
}
local inWindow = redis.call('HGET', windows, windowName)
-- The last fiftieth of the memory is for known accounts: made-up credentials must not take the room of records.
if not made and not inWindow then
  ${MEMORY}
  if memory() > 0.98 and redis.call('EXISTS', account, windows) == 0 then
    reply[9], reply[10] = 0, 0
    return reply
  end
end
local isUsedUp = false
if windowName ~= '' then
  ${useOf('inWindow', 'windowMs')}
  used = used + counted
  -- At most half of what is left for all together who listen for changes.
  local half, advance = math.floor((limit - used) / 2), false
  if wanted ~= '0' and channel ~= '' and not isNew and half > 0 then
    local listening = redis.pcall('PUBSUB', 'NUMSUB', channel)
    local many = not listening.err and listening[2] or 0
    if many > 0 then advance = math.min(wanted, math.floor(half / many)) end
  end
  used, isUsedUp = used + (advance or 0), used > tonumber(limit)
  ${setUse('windowName')}
  reply[6], reply[7], reply[8] = used, ends - now, advance
end
if session ~= '' then
  ${EPOCH_OF}${SESSION_OF}
  local isRevoked, epochOfAll, sinceMs = sessionOf(sessionEpoch, ${SESSION_MS}, found[5], found[6], found[7])
  reply[9], reply[10], reply[11] = isRevoked, epochOfAll, sinceMs or false
end

local open = {} -- those without a fresh copy, that want a lease or wait for one
local isNewEpoch = not epoch
local field = fields + (session ~= '' and 3 or 0)
reply[3] = isUsedUp and 0 or count
for i = 1, reply[3] do
  local from, to, copy = FIRST + EACH * (i - 1), 11 + 5 * (i - 1), KEYS[4 + i]
  local key, tags, ownVersion, ownAskedAt, ownIsFresh, lease, waitedFor = unpack(ARGV, from, from + EACH - 1)
  for place = to + 1, to + 5 do reply[place] = false end
  ${IS_HIDDEN}
  if not isOther and not isHidden then
    if not epoch then
      ${VERSIONS}
      renewAll()
      found = {}
    end
    life = math.max(life, 120000)
    ${VERSION}
    local header = isNewEpoch and '' or redis.call('GETRANGE', copy, '0', '33')
    local version, askedAt, keptAt, freshUntil
    if header ~= '' then version, askedAt, keptAt, freshUntil = struct.unpack('${HEADER}', header) end
    if version and keptAt > now then
      redis.call('DEL', copy)
      version = nil
    end
    local own = ownVersion == current and tonumber(ownAskedAt)
    local isThere = version == current and not (own and askedAt < own)
    local isFresh = isThere and freshUntil > now or own and ownIsFresh == '1'
    reply[to + 1] = current
    if isThere then
      reply[to + 3], reply[to + 4] = askedAt, math.max(0, now - keptAt)
      if askedAt ~= own then reply[to + 5] = redis.call('GETRANGE', copy, '34', '-1') end
    end
    if not isFresh and (lease ~= '' or waitedFor ~= '') then open[#open + 1] = i end
  end
  field = field + tags
end

-- A lease of another version is not waited for: what it fetches will not be kept.
if #open > 0 then
  local names, taken, more = {}, {}, 0
  for j, i in ipairs(open) do names[j] = ARGV[FIRST + EACH * (i - 1)] end
  local known = isNewEpoch or redis.call('HMGET', leases, unpack(names))
  for j, i in ipairs(open) do
    local from, to = FIRST + EACH * (i - 1), 11 + 5 * (i - 1)
    local lease, waitedFor, version, isNew = ARGV[from + 5], ARGV[from + 6], reply[to + 1], reply[to + 5]
    local nonce, under, ends = string.match(not isNewEpoch and known[j] or '', '${LEASE}')
    local isHeld = nonce and under == version and tonumber(ends) > now and tonumber(ends) <= now + ${LEASE_MS}
    if isHeld and nonce == waitedFor then
      reply[to + 2] = nonce
    elseif lease ~= '' and not (waitedFor ~= '' and isNew) then
      if isHeld and nonce ~= lease then
        reply[to + 2] = waitedFor == '' and nonce
      else
        reply[to + 2] = lease
        taken[#taken + 1], taken[#taken + 2] = names[j], lease .. ' ' .. version .. ' ' .. now + ${LEASE_MS}
        if not nonce then more = more + 1 end
      end
    end
  end
  if more > 0 and not isNewEpoch and redis.call('HLEN', leases) + more > ${MAX_LEASES} then redis.call('DEL', leases) end
  if #taken > 0 then
    redis.call('HSET', leases, unpack(taken))
    redis.call('PEXPIRE', leases, '${LEASE_MS}')
  end
end
${END}`;

/**
 * KEYS: leases, what is held, copies. ARGV: for each copy its key, version, instant, lease, what to drop, the number of tags,
 * how long it is fresh (empty without a copy) and lives, and its value; fields of the account, those of the tags. They are
 * saved one after the other. Replies for each what became of it.
 */
export const save = `${IDENTITY}
local FIRST, EACH = 6, 9
local count = #KEYS - 4
local fields = FIRST + EACH * count
local leases = KEYS[3]
${accountOf(FIELDS)}${hiddenOf(FIELDS)}
local keys, over = {}, {}
for i = 1, count do keys[i] = ARGV[FIRST + EACH * (i - 1)] end
for i, lease in ipairs(redis.call('HMGET', leases, unpack(keys))) do
  if lease and string.match(lease, '^%S+') == ARGV[FIRST + EACH * (i - 1) + 3] then over[#over + 1] = keys[i] end
end
if #over > 0 then redis.call('HDEL', leases, unpack(over)) end

${MEMORY}
local used, most = memory()
${HELD_COPIES}
local longest = 0
local reply = { token, number }
local field = fields
for i = 1, count do
  local from, copy, result = FIRST + EACH * (i - 1), KEYS[4 + i], 'void'
  local key, version, askedAt, _, drop, tags, freshMs, lifeMs, value = unpack(ARGV, from, from + EACH - 1)
  askedAt = tonumber(askedAt)
  if drop ~= '' then
    ${VERSIONS}
    isChange = isChange or epoch
    if drop == 'key' and redis.call('DEL', copy) == 1 and sizes[key] > 0 then hold(key, 0) end
    if drop == 'everything' then renew({ '*' }) elseif tags ~= '0' then renew({ string.sub(ARGV[field], 2) }) end
    found = redis.call('HMGET', account, 'i', 'e', 'm', 'c'${FIELDS})
  end
  ${IS_HIDDEN}
  -- More than a second later than now: the clock was set back meanwhile, and no later answer could take its place.
  if askedAt <= now + 1000 and not isOther and epoch and not isHidden then
    ${VERSION}
    if current == version then result = 'full' end
  end
  if result == 'full' and freshMs ~= '' then
    local knownVersion, knownAskedAt, keptAt, freshUntil
    local header = sizes[key] > 0 and redis.call('GETRANGE', copy, '0', '33') or ''
    if header ~= '' then knownVersion, knownAskedAt, keptAt, freshUntil = struct.unpack('${HEADER}', header) end
    local bytes = math.ceil(math.max(#value, most / ${MAX_COPIES}))
    if knownVersion == version and knownAskedAt > askedAt and keptAt <= now then
      result = 'void'
    elseif (knownVersion or used <= 0.75) and hasRoom(key, bytes) then
      local life = tonumber(lifeMs)
      result, longest = 'kept', math.max(longest, life)
      hold(key, bytes, life)
      redis.call('SET', copy, struct.pack('${HEADER}', version, askedAt, now, now + freshMs) .. value, 'PX', life)
      -- Who has the one before, and is not told, would go on giving it.
      isChange = isChange or knownVersion == version and freshUntil > now
    end
  end
  reply[i + 2], field = result, field + tags
end
if longest > 0 then
  life = math.max(life, longest)
  ${prolong('held', 'longest', 'hadEnd')}
end
${END}`;
