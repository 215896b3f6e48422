import { LEASE_MS, MAX_COOLDOWN_MS, MAX_COPIES, MAX_LEASES } from '../../../store/shared/engine.ts';
import { MAX_MARKS } from '../../../store/writes.ts';
import { SESSION_MS, MAX_REVOKED } from '../../../store/store.ts';
import { HELD_COPIES, HELD_RECORDS, LEASES, windowsAt } from './hashes.ts';
import { ACCOUNT, EPOCH_OF, IDENTITY, NOW } from './lua.ts';

/** The calls of an engine, and `hello`, which exchanges the id of a share, and says whether it has replicas (1 or 0). */
const hello = `${IDENTITY}
return { token, number, string.find(replication, 'connected_slaves:0', 1, true) and 0 or 1 }`;

/** KEYS: leases, windows, copies. Replies with the values of copies that the instance does not have, in the order of the keys. */
const snapshot = `${ACCOUNT}${LEASES}${windowsAt(4)}
local reply = { now = now, cooldownMs = cooldown, keys = {} }
-- The last fiftieth of the memory is for known accounts: made-up credentials must not take the room of records.
if not made and redis.call('EXISTS', account, windows) == 0 and memory() > 0.98 then
  reply.session = { isRevoked = false, epoch = 0 }
  return answer(reply)
end
if asked.window then reply.use = count('w', asked.window, asked.count or 1, asked.advance) end
if asked.budget then reply.budget = count('b', asked.budget, 0) end
if asked.session then reply.session = sessionOf(asked.session, asked.sessionEpoch, ${SESSION_MS}) end
if isUsedUp(asked.window, reply.use) then return answer(reply) end

-- A lease of another version is not waited for: what it fetches will not be kept.
local function lease(question, version, isNew)
  local key, wanted, waitedFor = question.key, question.lease, question.waitedFor
  local nonce, under, ends = leaseOf(key)
  local isHeld = nonce and under == version and tonumber(ends) > now and tonumber(ends) <= now + ${LEASE_MS}
  if waitedFor and isHeld and nonce == waitedFor then return nonce end
  if not wanted or waitedFor and isNew then return nil end
  if isHeld and nonce ~= wanted then return not waitedFor and nonce or nil end
  if not nonce and redis.call('HLEN', leases) >= ${MAX_LEASES} then redis.call('DEL', leases) end
  setLease(key, wanted, version)
  return wanted
end
local function lookUp(copy, question)
  local version, have = versionOf(question.tags), question.have
  local copyVersion, askedAt, keptAt, freshUntil = headerOf(copy)
  if copyVersion and keptAt > now then
    redis.call('DEL', copy)
    copyVersion = nil
  end
  local own = have and have.version == version and have
  local isThere = copyVersion == version and not (own and askedAt < own.askedAt)
  local isFresh = isThere and freshUntil > now or own and own.isFresh
  local isNew = isThere and not (own and askedAt == own.askedAt)
  local found = { version = version }
  if not isFresh then found.lease = lease(question, version, isNew) end
  if isThere then found.copy = { askedAt = askedAt, ageMs = math.max(0, now - keptAt) } end
  return found, isNew and redis.call('GETRANGE', copy, HEADER_BYTES, -1)
end

local values = {}
for i, question in ipairs(asked.keys) do
  reply.keys[i], values[i] = false, false
  if not isOther and not isMarked(question.tags) then
    if not epoch then renewAll() end
    keep(120000)
    reply.keys[i], values[i] = lookUp(KEYS[4 + i], question)
  end
end
return answer(reply, unpack(values))`;

/** KEYS: leases, what is held, copy. Replies what became of the copy. */
const save = `${ACCOUNT}${LEASES}${HELD_COPIES}
local copyKey, key, version, tags, copy = KEYS[5], asked.key, asked.version, asked.tags, asked.copy
if asked.lease and leaseOf(key) == asked.lease then redis.call('HDEL', leases, key) end
isChange = asked.drop and epoch
if asked.drop == 'everything' then renew({ '*' }) end
if asked.drop == 'key' then
  if redis.call('DEL', copyKey) == 1 then hold(key, 0, 1) end
  renew({ tags[1] })
end
-- More than a second later than now: the clock was set back meanwhile, and no later answer could take its place.
if asked.askedAt > now + 1000 then return answer('void') end
if isOther or not epoch or isMarked(tags) or versionOf(tags) ~= version then return answer('void') end
if not copy then return answer('full') end
local knownVersion, knownAskedAt, keptAt, freshUntil = headerOf(copyKey)
if knownVersion == version and knownAskedAt > asked.askedAt and keptAt <= now then return answer('void') end
local used, most = memory()
if not knownVersion and used > 0.75 then return answer('full') end
local bytes = math.ceil(math.max(#value, most / ${MAX_COPIES}))
local function sum() return (redis.call('HGET', held, 'C') or 0) + bytes - heldCopy(key) end
if sum() > most then makeRoom(most) end
if sum() > most then return answer('full') end
local life = math.max(1, math.ceil(copy.lifeMs))
hold(key, bytes, life)
local header = struct.pack(HEADER, version, asked.askedAt, now, now + copy.freshMs)
redis.call('SET', copyKey, header .. value, 'PX', life)
keep(life)
-- Who has the one before, and is not told, would go on giving it.
isChange = isChange or knownVersion == version and freshUntil > now
return answer('kept')`;

/** KEYS: the note that the write has ended, what is held, windows, record or none. Replies with the value of the record. */
const beginWrite = `${ACCOUNT}${HELD_RECORDS}${windowsAt(5)}
local ended, record, nonce, purchase, session = KEYS[3], KEYS[6], asked.nonce, asked.purchase or '', asked.session
local use = asked.window and count('w', asked.window, 1)
local function result(is, more, ...)
  local reply = more or {}
  reply.is, reply.use = is, use
  return answer(reply, ...)
end
if isUsedUp(asked.window, use) then return result('limit') end
if session then
  local state = sessionOf(session.id, session.epoch, ${SESSION_MS})
  if state.isRevoked or state.epoch > session.epoch then return result('revoked', { sinceMs = state.sinceMs }) end
end

if redis.call('EXISTS', ended) == 1 then return result('over') end
local mark = markOf(nonce)
if mark then return result(mark[STATE] == 'w' and 'begun' or 'over') end
local recorded = record and redis.call('GET', record)
if recorded then
  -- Without its third word it is of an earlier version.
  local owner, busyUntil, announcedAt, text = string.match(recorded, '^(%S+) (%d+) ?(%d*)\\n(.*)$')
  if owner ~= nonce then
    local owned = markOf(owner)
    local isBusy = tonumber(busyUntil) > now and owned and owned[BUSY] > now
    local isSettled = busyUntil == '0'
    local since = isSettled and sinceOf(announcedAt) or nil
    return result('record', { isOver = not isSettled and not isBusy, sinceMs = since }, text)
  end
  if busyUntil == '0' then return result('over') end
end

local standing
for _, other in ipairs(purchase ~= '' and marks or {}) do
  if other[PURCHASE] == purchase and not (record and other[KEY] == 1) then
    local isBusy = other[STATE] == 'w' and other[BUSY] > now
    standing = (isBusy or standing == 'under_way') and 'under_way' or 'unknown'
  end
end
if standing then return result('equal', { standing = standing }) end
if cooldown > 0 then return result('cooldown', { cooldownMs = cooldown }) end
if isOther and (record or purchase ~= '') then return result('another_store', { leftMs = window - (now - since) }) end
local part, most = memory()
if #marks >= ${MAX_MARKS} or part >= 1 then return result('full') end
local busy = now + math.ceil(asked.busyMs)
if record then
  local _, sum = heldRecords()
  local text = nonce .. ' ' .. busy .. ' ' .. now .. '\\n' .. value
  if sum + weightOf(text) > most then return result('full') end
  setRecord(record, text, asked.record.lifeMs)
end
setMark({ nonce, 'w', busy, now + math.ceil(asked.markMs), purchase, record and 1 or 0, asked.tags, now })
isChange = true
return result('begun')`;

/** KEYS: the note that the write has ended, what is held, record or none. */
const endWrite = `${ACCOUNT}${HELD_RECORDS}
local ended, record, nonce, how, stands = KEYS[3], KEYS[5], asked.nonce, asked['end'], math.ceil(asked.markMs)
local mark = markOf(nonce)
-- While its mark stands nobody relies on what it invalidates.
isChange = not mark and (how == 'unknown' or how ~= 'not_sent' and epoch)
  or asked.dropEverything and (epoch or #marks > 0)
local announcedAt = mark and mark[SET] or now
if how == 'unknown' then
  mark = mark or { nonce, 'u', now, now + stands, asked.purchase or '', record and 1 or 0, asked.tags, now }
  mark[STATE] = 'u'
  setMark(mark)
elseif mark then
  without(function(other) return other == mark end)
  writeMarks()
elseif how == 'not_sent' then
  -- Its beginning, should it come later, does nothing.
  redis.call('SET', ended, 1, 'PX', stands)
end
if how ~= 'not_sent' then renew(asked.tags) end
if asked.dropEverything then renew({ '*' }) end

local owner = record and string.match(redis.call('GETRANGE', record, 0, 127), '^%S+')
if record and (how == 'refused' or how == 'not_sent') then
  if owner == nonce then setRecord(record) end
elseif record and value and (not owner or owner == nonce) then
  setRecord(record, nonce .. ' 0 ' .. announcedAt .. '\\n' .. value, asked.record.lifeMs)
end
return answer(true)`;

/** KEYS: leases, windows. */
const change = `${ACCOUNT}${LEASES}${windowsAt(4)}
local renewed, revoked = asked.renewed, asked.revoked
if renewed then
  local nonce, version = leaseOf(renewed.key)
  if nonce == renewed.lease then setLease(renewed.key, nonce, version) end
end
local cooling = math.min(math.ceil(asked.cooldownMs or 0), ${MAX_COOLDOWN_MS})
if cooling > cooldown then
  redis.call('HSET', account, 'c', now + cooling)
  keep(cooling)
end
if asked.spent then count('b', asked.spent, 1) end
if revoked then
  local state = sessionOf(revoked.id or '', revoked.epoch, revoked.lifeMs)
  if revoked.id then
    redis.call('HSET', account, 's' .. revoked.id, now + revoked.lifeMs)
    if not state.isRevoked then
      isChange = true
      redis.call('HSET', account, 'X', now)
    end
  end
  for _, field in ipairs(fieldsOf(account, 's')) do
    if tonumber(redis.call('HGET', account, field)) <= now then redis.call('HDEL', account, field) end
  end
  local left = fieldsOf(account, 's')
  if #left > ${MAX_REVOKED} then
    redis.call('HSET', account, 'x', state.epoch + 1)
    redis.call('HDEL', account, unpack(left))
  end
  keep(revoked.lifeMs)
end
return answer(true)`;

/** It runs where the others are refused. KEYS: account, and nothing before. ARGV: id of a session. Replies in JSON. */
const session = `#!lua flags=no-writes,allow-oom
${NOW}${EPOCH_OF}
local revoked, stored, changedAt = unpack(redis.call('HMGET', KEYS[1], 's' .. ARGV[1], 'x', 'X'))
return cjson.encode({ isRevoked = revoked ~= false, epoch = epochOf(stored), sinceMs = sinceOf(changedAt) })`;

export const SCRIPTS = { hello, snapshot, save, beginWrite, endWrite, change, session } as const;

export type ScriptName = keyof typeof SCRIPTS;
