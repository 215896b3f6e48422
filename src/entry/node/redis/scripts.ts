import {
  LEASE_MS,
  MAX_COOLDOWN_MS,
  MAX_COPIES,
  MAX_LEASES,
  MAX_MARKS,
  MAX_REVOKED,
} from '../../../store/shared/engine.ts';
import { SESSION_MS } from '../../../store/store.ts';
import { ACCOUNT, EPOCH_OF, HELD_COPIES, HELD_RECORDS, IDENTITY } from './lua.ts';

/** The calls of an engine, and `hello`, which exchanges the id of a share and nothing else. */
const hello = `${IDENTITY}
return { token }`;

/**
 * KEYS: leases, copies. ARGV: window (name or nothing, length, limit); budget (name or nothing, length); id and epoch of a
 * session or nothing; for each key: version, asked at and freshness (1 or 0) of the instance's own copy; lease wanted; lease waited for; number of tags,
 * tags. Replies: now; used (-1: not counted) and left of the window; of the budget; cooldown; whether the session was
 * revoked (1 or 0), epoch of the account's sessions; for each key nothing, or
 * version, asked at (-1: no copy), age, value or nothing, lease or nothing.
 */
const snapshot = `${ACCOUNT}
-- The last fiftieth of the memory is for known accounts: made-up credentials must not take the room of records.
if redis.call('EXISTS', account) == 0 and memory() > 0.98 then return { token, now, -1, 0, 0, 0, 0, 0, 0 } end
local reply = { token, now, 0, 0, 0, 0, cooldown, 0, 0 }
if ARGV[5] ~= '' then reply[3], reply[4] = count('w' .. ARGV[5], ARGV[6], 1) end
if ARGV[8] ~= '' then reply[5], reply[6] = count('b' .. ARGV[8], ARGV[9], 0) end
if ARGV[10] ~= '' then reply[8], reply[9] = sessionOf(ARGV[10], ARGV[11], ${SESSION_MS}) end
if ARGV[5] ~= '' and reply[3] > tonumber(ARGV[7]) then return answer(reply) end

-- A lease of another version is not waited for: what it fetches will not be kept.
local function lease(key, version, wanted, waitedFor)
  local nonce, under, ends = string.match(redis.call('HGET', leases, key) or '', '^(%S+) (%S+) (%d+)$')
  local isHeld = nonce and under == version and tonumber(ends) > now and tonumber(ends) <= now + ${LEASE_MS}
  if waitedFor ~= '' and isHeld and nonce == waitedFor then return nonce end
  if wanted == '' then return false end
  if isHeld and nonce ~= wanted then return waitedFor == '' and nonce end
  if not nonce and redis.call('HLEN', leases) >= ${MAX_LEASES} then redis.call('DEL', leases) end
  setLease(key, wanted, version)
  return wanted
end
local function lookUp(copy, at, tags)
  local version, hasVersion, hasAskedAt = versionOf(tags), ARGV[at], tonumber(ARGV[at + 1])
  local copyVersion, askedAt, keptAt, freshUntil = headerOf(copy)
  if copyVersion and keptAt > now then
    redis.call('DEL', copy)
    copyVersion = nil
  end
  local isThere, has = copyVersion == version, hasVersion == version
  if isThere and has and askedAt < hasAskedAt then isThere = false end
  local isFresh = isThere and freshUntil > now or has and ARGV[at + 2] == '1'
  local isNew = isThere and not (has and askedAt == hasAskedAt)
  local key, wanted, waitedFor = string.sub(copy, #account + 2), ARGV[at + 3], ARGV[at + 4]
  local holder = false
  if not isFresh then
    holder = lease(key, version, isNew and waitedFor ~= '' and '' or wanted, waitedFor)
  end
  local value = isNew and redis.call('GETRANGE', copy, HEADER_BYTES, -1)
  if not isThere then return { version, -1, 0, false, holder } end
  return { version, askedAt, math.max(0, now - keptAt), value, holder }
end

local at = 12
for i = 4, #KEYS do
  local last = at + 5 + ARGV[at + 5]
  local tags = slice(at + 6, last)
  local found = false
  if not isOther and not isMarked(tags) then
    if not epoch then renewAll() end
    keep(120000)
    found = lookUp(KEYS[i], at, tags)
  end
  reply[#reply + 1] = found
  at = last + 1
end
return answer(reply)`;

/**
 * KEYS: leases, what is held, copy. ARGV: version, asked at, lease or nothing, drop; 1 with a copy, its value, freshness, life; tags.
 * Replies what became of the copy.
 */
const save = `${ACCOUNT}${HELD_COPIES}
local copy, version, askedAt, tags = KEYS[5], ARGV[5], tonumber(ARGV[6]), slice(13, #ARGV)
local key = string.sub(copy, #account + 2)
endLease(key, ARGV[7])
if ARGV[8] == 'everything' then renew({ '*' }) end
if ARGV[8] == 'key' then
  if redis.call('DEL', copy) == 1 then hold(key, 0, 1) end
  renew({ tags[1] })
end
-- More than a second later than now: the clock was set back meanwhile, and no later answer could take its place.
if askedAt > now + 1000 then return answer({ token, 'void' }) end
if isOther or not epoch or isMarked(tags) or versionOf(tags) ~= version then return answer({ token, 'void' }) end
if ARGV[9] ~= '1' then return answer({ token, 'full' }) end
local knownVersion, knownAskedAt, keptAt = headerOf(copy)
if knownVersion == version and knownAskedAt > askedAt and keptAt <= now then return answer({ token, 'void' }) end
local used, most = memory()
if not knownVersion and used > 0.75 then return answer({ token, 'full' }) end
local bytes = math.ceil(math.max(#ARGV[10], most / ${MAX_COPIES}))
local function sum() return (redis.call('HGET', held, 'C') or 0) + bytes - heldCopy(key) end
if sum() > most then makeRoom(most) end
if sum() > most then return answer({ token, 'full' }) end
hold(key, bytes, ARGV[12])
local header = struct.pack(HEADER, version, askedAt, now, now + ARGV[11])
redis.call('SET', copy, header .. ARGV[10], 'PX', ARGV[12])
keep(tonumber(ARGV[12]))
return answer({ token, 'kept' })`;

/**
 * KEYS: the note that the write has ended, what is held, record or none. ARGV: window (name or nothing, length, limit); nonce, how long
 * it may take, how long the mark stands, purchase or nothing; value and life of the record; id and epoch of a session, or
 * nothing; tags. Replies: used and left
 * of the window; the result, and its details.
 */
const beginWrite = `${ACCOUNT}${HELD_RECORDS}
local record, nonce, busy, stands, purchase = KEYS[5], ARGV[8], now + ARGV[9], now + ARGV[10], ARGV[11]
local used, left = 0, 0
if ARGV[5] ~= '' then used, left = count('w' .. ARGV[5], ARGV[6], 1) end
local function result(...) return answer({ token, used, left, ... }) end
if ARGV[5] ~= '' and used > tonumber(ARGV[7]) then return result('limit') end
if ARGV[14] ~= '' then
  local isRevoked, current = sessionOf(ARGV[14], ARGV[15], ${SESSION_MS})
  if isRevoked == 1 or current > tonumber(ARGV[15]) then return result('revoked') end
end

if redis.call('EXISTS', KEYS[3]) == 1 then return result('over') end
local mark = markOf(nonce)
if mark then return result(mark[STATE] == 'w' and 'begun' or 'over') end
local known = record and redis.call('GET', record)
if known then
  local owner, busyUntil, value = string.match(known, '^(%S+) (%d+)\\n(.*)$')
  if owner ~= nonce then
    local owned = markOf(owner)
    local isBusy = tonumber(busyUntil) > now and owned and owned[BUSY] > now
    return result('record', value, busyUntil ~= '0' and not isBusy and 1 or 0)
  end
  if busyUntil == '0' then return result('over') end
end

local state
for _, other in ipairs(purchase ~= '' and marks or {}) do
  if other[PURCHASE] == purchase and not (record and other[KEY] == 1) then
    local isBusy = other[STATE] == 'w' and other[BUSY] > now
    state = (isBusy or state == 'under_way') and 'under_way' or 'unknown'
  end
end
if state then return result('equal', state) end
if cooldown > 0 then return result('cooldown', cooldown) end
if isOther and (record or purchase ~= '') then return result('another_store', window - (now - since)) end
local part, most = memory()
if #marks >= ${MAX_MARKS} or part >= 1 then return result('full') end
if record then
  local _, sum = heldRecords()
  local text = nonce .. ' ' .. busy .. '\\n' .. ARGV[12]
  if sum + weightOf(text) > most then return result('full') end
  setRecord(record, text, ARGV[13])
end
setMark({ nonce, 'w', busy, stands, purchase, record and 1 or 0, slice(16, #ARGV), now })
return result('begun')`;

/**
 * KEYS: the note that the write has ended, what is held, record or none. ARGV: nonce, how it ended, how long the mark stands, purchase or
 * nothing, 1 to drop everything; 1 with a value of the record, value, life; tags.
 */
const endWrite = `${ACCOUNT}${HELD_RECORDS}
local record, nonce, ended, stands, tags = KEYS[5], ARGV[5], ARGV[6], now + ARGV[7], slice(13, #ARGV)
local mark = markOf(nonce)
if ended == 'unknown' then
  mark = mark or { nonce, 'u', now, stands, ARGV[8], record and 1 or 0, tags, now }
  mark[STATE] = 'u'
  setMark(mark)
elseif mark then
  without(function(other) return other == mark end)
  writeMarks()
elseif ended == 'not_sent' then
  -- Its beginning, should it come later, does nothing.
  redis.call('SET', KEYS[3], 1, 'PX', ARGV[7])
end
if ended ~= 'not_sent' then renew(tags) end
if ARGV[9] == '1' then renew({ '*' }) end

local owner = record and string.match(redis.call('GETRANGE', record, 0, 127), '^%S+')
if record and (ended == 'refused' or ended == 'not_sent') then
  if owner == nonce then setRecord(record) end
elseif record and ARGV[10] == '1' and (not owner or owner == nonce) then
  setRecord(record, nonce .. ' 0\\n' .. ARGV[11], ARGV[12])
end
return answer({ token })`;

/**
 * KEYS: leases. ARGV: cooldown, or 0; budget (name or nothing, length); key and nonce of a lease, or nothing; a session to
 * revoke, or nothing, least epoch of all, and how long to remember them, or 0.
 */
const change = `${ACCOUNT}
local nonce, version = string.match(redis.call('HGET', leases, ARGV[8]) or '', '^(%S+) (%S+)')
if nonce and nonce == ARGV[9] then setLease(ARGV[8], nonce, version) end
local cooling = math.min(tonumber(ARGV[5]), ${MAX_COOLDOWN_MS})
if cooling > cooldown then
  redis.call('HSET', account, 'c', now + cooling)
  keep(cooling)
end
if ARGV[6] ~= '' then count('b' .. ARGV[6], ARGV[7], 1) end
local session, life = ARGV[10], tonumber(ARGV[12])
if life > 0 then
  local _, epochOfAll = sessionOf(session, ARGV[11], life)
  local left = 0
  if session ~= '' then redis.call('HSET', account, 's' .. session, now + life) end
  for _, field in ipairs(redis.call('HKEYS', account)) do
    if string.sub(field, 1, 1) == 's' then
      if tonumber(redis.call('HGET', account, field)) <= now then redis.call('HDEL', account, field) else left = left + 1 end
    end
  end
  if left > ${MAX_REVOKED} then
    redis.call('HSET', account, 'x', epochOfAll + 1)
    for _, field in ipairs(redis.call('HKEYS', account)) do
      if string.sub(field, 1, 1) == 's' then redis.call('HDEL', account, field) end
    end
  end
  keep(life)
end
return answer({ token })`;

/** It runs where the others are refused. KEYS: account, and nothing before. ARGV: id of a session. Replies as `snapshot` does of it. */
const session = `#!lua flags=no-writes,allow-oom${EPOCH_OF}
local revoked, stored = unpack(redis.call('HMGET', KEYS[1], 's' .. ARGV[1], 'x'))
return { revoked and 1 or 0, epochOf(stored) }`;

export const SCRIPTS = { hello, snapshot, save, beginWrite, endWrite, change, session } as const;

export type ScriptName = keyof typeof SCRIPTS;
