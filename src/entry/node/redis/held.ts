import { LEAST_RECORD_BYTES } from '../../../store/shared/engine.ts';

/** What an account holds: KEYS[4]. */
const HELD = `
local held = KEYS[4]
local function keepHeld(ms)
  if redis.call('PTTL', held) < tonumber(ms) then redis.call('PEXPIRE', held, ms) end
end
`;

/** A copy that is gone is not looked for: it is forgotten with its end, when room is needed. */
export const HELD_COPIES = `${HELD}
local function heldCopy(key)
  local bytes, ends = string.match(redis.call('HGET', held, 'c' .. key) or '', '^(%d+) (%d+)$')
  return tonumber(bytes or 0), tonumber(ends or 0)
end
local function hold(key, bytes, life)
  local sum = (redis.call('HGET', held, 'C') or 0) + bytes - heldCopy(key)
  if bytes > 0 then redis.call('HSET', held, 'c' .. key, bytes .. ' ' .. now + life) else redis.call('HDEL', held, 'c' .. key) end
  redis.call('HSET', held, 'C', math.max(0, sum))
  keepHeld(life)
end
-- Deletes copies of the account until they take half of what they may, so that the next time is far off. Their keys are not
-- declared, but in the slot of those that are; while that moves a deletion may be refused.
local function makeRoom(most)
  local left = 0
  for _, field in ipairs(redis.call('HKEYS', held)) do
    local key = string.match(field, '^c(.+)$')
    if key then
      local bytes, ends = heldCopy(key)
      local isKept = ends > now and left + bytes <= most / 2
      if isKept then left = left + bytes
      elseif ends <= now or type(redis.pcall('DEL', KEYS[2]:gsub(':a:', ':c:', 1) .. ':' .. key)) == 'number' then
        redis.call('HDEL', held, field)
      else
        left = left + bytes
      end
    end
  end
  redis.call('HSET', held, 'C', left)
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
    redis.call('SET', record, text, 'PX', life)
    add(now + life, weightOf(text))
  else
    redis.call('DEL', record)
  end
  if next(hours) then redis.call('HSET', held, 'R', cmsgpack.pack(hours)) else redis.call('HDEL', held, 'R') end
  if text then keepHeld(life) end
end
`;
