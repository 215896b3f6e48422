import { LEAST_RECORD_BYTES } from '../../../store/shared/engine.ts';
import { prolong, VERSIONS } from './lua.ts';

/**
 * Windows of the account, a hash of its own (count and end; `w<name>`), which expires with the longest of them: how much of
 * one is used, when it ends, whether that is a new one.
 */
export const useOf = (text: string, length: string) => `
local used, ends = string.match(${text} or '', '^(%d+) (%d+)$')
used, ends = tonumber(used), tonumber(ends)
local isNew = not used or ends <= now or ends > now + ${length}
if isNew then used, ends = 0, now + ${length} end
`;

export const setUse = (field: string) => `
redis.call('HSET', windows, ${field}, used .. ' ' .. ends)
if isNew then
  ${prolong('windows', 'ends - now', 'false')}
end
`;

/** Counts one more in a window. */
export const COUNT = `
local function count(span)
  local field, length = 'w' .. span.name, math.ceil(span.lengthMs)
  ${useOf("redis.call('HGET', windows, field)", 'length')}
  used = used + 1
  ${setUse('field')}
  return { used = used, leftMs = ends - now }
end
`;

/** Of leases of the account, a hash of its own (nonce, version, end by key), which expires with the last of them. */
export const LEASE = '^(%S+) (%S+) (%d+)$';

/**
 * KEYS[4]: what an account holds, a hash: `c<key>` a copy (bytes, end), `C` their sum, `R` bytes of its records by the hour in
 * which they end (packed). It expires with the last of them.
 */
const HELD = `
local held = KEYS[4]
`;

/** A copy that is gone is not looked for: it is forgotten with its end, when room is needed. */
export const HELD_COPIES = `${HELD}
local names, sizes = { 'C' }, {}
for i, key in ipairs(keys) do names[i + 1] = 'c' .. key end
local sizesThen = redis.call('HMGET', held, unpack(names))
local hadEnd, sum = sizesThen[1], tonumber(sizesThen[1] or 0)
for i, key in ipairs(keys) do sizes[key] = tonumber(string.match(sizesThen[i + 1] or '', '^%d+') or 0) end
local function hold(key, bytes, life)
  sum, sizes[key] = math.max(0, sum + bytes - sizes[key]), bytes
  if bytes > 0 then
    redis.call('HSET', held, 'c' .. key, bytes .. ' ' .. now + life, 'C', sum)
  else
    redis.call('HDEL', held, 'c' .. key)
    redis.call('HSET', held, 'C', sum)
  end
end
-- Deletes copies of the account until they take half of what they may, so that the next time is far off. Their keys are not
-- declared, but in the slot of those that are; while that moves a deletion may be refused.
local function hasRoom(wanted, bytes)
  if sum + bytes - sizes[wanted] <= most then return true end
  ${VERSIONS}
  sum = 0
  for _, field in ipairs(fieldsOf(held, 'c')) do
    local key = string.sub(field, 2)
    local size, ends = string.match(redis.call('HGET', held, field), '^(%d+) (%d+)$')
    size, ends = tonumber(size), tonumber(ends)
    local isKept = ends > now and sum + size <= most / 2
    local isOver = ends <= now
      or not isKept and type(redis.pcall('DEL', KEYS[2]:gsub(':a:', ':c:', 1) .. ':' .. key)) == 'number'
    if isOver then
      redis.call('HDEL', held, field)
      if sizes[key] then sizes[key] = 0 end
    else
      sum = sum + size
    end
  end
  redis.call('HSET', held, 'C', sum)
  return sum + bytes - sizes[wanted] <= most
end
`;

/** Sums by the hour, since records end by themselves and are never deleted to make room. */
export const HELD_RECORDS = `${HELD}
local HOUR = 3600000
local function weightOf(text) return math.max(#text, ${LEAST_RECORD_BYTES}) end
local function heldRecords()
  local packed = redis.call('HGET', held, 'R')
  local left, sum = {}, 0
  for hour, bytes in pairs(packed and cmsgpack.unpack(packed) or {}) do
    if (hour + 1) * HOUR > now then left[hour], sum = bytes, sum + bytes end
  end
  return left, sum
end
local function setRecord(record, text, life)
  local hours = heldRecords()
  local function add(ends, bytes)
    local hour = math.floor(ends / HOUR)
    local sum = (hours[hour] or 0) + bytes
    hours[hour] = sum > 0 and sum or nil
  end
  local known = redis.call('GET', record)
  if known then add(now + redis.call('PTTL', record), -weightOf(known)) end
  if text then
    life = math.ceil(life)
    redis.call('SET', record, text, 'PX', life)
    add(now + life, weightOf(text))
  else
    redis.call('DEL', record)
  end
  if next(hours) then redis.call('HSET', held, 'R', cmsgpack.pack(hours)) else redis.call('HDEL', held, 'R') end
  if text then
    ${prolong('held', 'life', 'false')}
  end
end
`;
