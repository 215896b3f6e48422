import { LEASE_MS, LEAST_RECORD_BYTES } from '../../../store/shared/engine.ts';

/**
 * KEYS[at]: windows and budgets of the account, a hash of its own (count and end; `w<name>`, `b<name>`), which
 * expires with the longest of them.
 */
export const windowsAt = (at: number) => `
local windows = KEYS[${at}]
-- Counts in so much, and what can be taken in advance. That is at most half of what is left for all who listen together.
local function count(kind, span, more, wanted)
  local field, length = kind .. span.name, math.ceil(span.lengthMs)
  local used, ends = string.match(redis.call('HGET', windows, field) or '', '^(%d+) (%d+)$')
  local begins = not used or tonumber(ends) <= now or tonumber(ends) > now + length
  if begins then used, ends = 0, now + length end
  used = used + more
  local half, advance = math.floor(((span.limit or 0) - used) / 2), nil
  if wanted and channel ~= '' and not begins and half > 0 then
    local listening = redis.pcall('PUBSUB', 'NUMSUB', channel)
    if not listening.err then advance = math.min(wanted, math.floor(half / math.max(1, listening[2]))) end
  end
  if more > 0 then
    used = used + (advance or 0)
    redis.call('HSET', windows, field, used .. ' ' .. ends)
    if begins and redis.call('PTTL', windows) < length then redis.call('PEXPIRE', windows, length) end
  end
  return { used = used, leftMs = ends - now, advance = advance }
end
`;

/** KEYS[3]: leases of the account, a hash of its own (nonce, version, end by key), which expires with the last of them. */
export const LEASES = `
local leases = KEYS[3]
local function leaseOf(key) return string.match(redis.call('HGET', leases, key) or '', '^(%S+) (%S+) (%d+)$') end
local function setLease(key, nonce, version)
  redis.call('HSET', leases, key, nonce .. ' ' .. version .. ' ' .. now + ${LEASE_MS})
  redis.call('PEXPIRE', leases, ${LEASE_MS})
end
`;

/**
 * KEYS[4]: what an account holds, a hash: `c<key>` a copy (bytes, end), `C` their sum, `R` bytes of its records by the hour in
 * which they end (packed). It expires with the last of them.
 */
const HELD = `
local held = KEYS[4]
local function keepHeld(ms)
  if redis.call('PTTL', held) < ms then redis.call('PEXPIRE', held, ms) end
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
  for _, field in ipairs(fieldsOf(held, 'c')) do
    local key = string.sub(field, 2)
    local bytes, ends = heldCopy(key)
    local isKept = ends > now and left + bytes <= most / 2
    local isOver = ends <= now
      or not isKept and type(redis.pcall('DEL', KEYS[2]:gsub(':a:', ':c:', 1) .. ':' .. key)) == 'number'
    if isOver then redis.call('HDEL', held, field) else left = left + bytes end
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
    life = math.ceil(life)
    redis.call('SET', record, text, 'PX', life)
    add(now + life, weightOf(text))
  else
    redis.call('DEL', record)
  end
  if next(hours) then redis.call('HSET', held, 'R', cmsgpack.pack(hours)) else redis.call('HDEL', held, 'R') end
  if text then keepHeld(life) end
end
`;
