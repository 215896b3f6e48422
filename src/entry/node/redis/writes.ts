import { LEASE_MS, MAX_COOLDOWN_MS } from '../../../store/shared/engine.ts';
import { MAX_MARKS } from '../../../store/writes.ts';
import { SESSION_MS, MAX_REVOKED } from '../../../store/store.ts';
import { COUNT, HELD_RECORDS, LEASE } from './hashes.ts';
import { accountOf, ASKED, EPOCH_OF, IDENTITY, MARKS, MEMORY, OWN_MARK, SESSION_OF, VERSIONS } from './lua.ts';

/** What the scripts of writes and changes begin with: ARGV: the call in JSON; the value of its record. */
const WRITES = `${accountOf()}${VERSIONS}${ASKED}${MARKS}${OWN_MARK}`;

/** KEYS: the note that the write has ended, what is held, windows, record or none. Replies with the value of the record. */
export const beginWrite = `${IDENTITY}${WRITES}${EPOCH_OF}${SESSION_OF}${MEMORY}${HELD_RECORDS}
local windows = KEYS[5]
${COUNT}
local ended, record, nonce, purchase, session = KEYS[3], KEYS[6], asked.nonce, asked.purchase or '', asked.session
local use = asked.window and count(asked.window)
local function result(is, more, ...)
  local reply = more or {}
  reply.is, reply.use = is, use
  return answer(reply, ...)
end
if use and use.used > asked.window.limit then return result('limit') end
if session then
  local isRevoked, epochOfAll, sinceMs = lookAt(session.id, session.epoch, ${SESSION_MS})
  if isRevoked == 1 or epochOfAll > session.epoch then return result('revoked', { sinceMs = sinceMs }) end
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
    local since = not isBusy and sinceOf(announcedAt) or nil
    return result('record', { isOver = not isSettled and not isBusy, sinceMs = since }, text)
  end
  if busyUntil == '0' then return result('over') end
end

local standing, standsSince
for _, other in ipairs(purchase ~= '' and marks or {}) do
  if other[PURCHASE] == purchase and not (record and other[KEY] == 1) then
    local isBusy = other[STATE] == 'w' and other[BUSY] > now
    standing = (isBusy or standing == 'under_way') and 'under_way' or 'unknown'
    standsSince = math.max(standsSince or 0, other[SET] or now)
  end
end
if standing then return result('equal', { standing = standing, sinceMs = standing == 'unknown' and sinceOf(standsSince) or nil }) end
if isOther and (record or purchase ~= '') then return result('another_store', { leftMs = window - (now - since) }) end
if asked.isQuestion then return result('free') end
if cooldown > 0 then return result('cooldown', { cooldownMs = cooldown }) end
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
export const endWrite = `${IDENTITY}${WRITES}${HELD_RECORDS}
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
  -- What is left of it hides nothing, and ends by its time alone.
  local answeredAt = announcedAt + (asked.heldMs or 0)
  if answeredAt > now then
    marks[#marks + 1] = { '', 'w', answeredAt, answeredAt, mark[PURCHASE], mark[KEY], {}, announcedAt }
  end
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

/** KEYS: leases. */
export const change = `${IDENTITY}${accountOf()}${ASKED}
local leases = KEYS[3]
local renewed, revoked = asked.renewed, asked.revoked
if renewed then
  local nonce, version = string.match(redis.call('HGET', leases, renewed.key) or '', '${LEASE}')
  if nonce == renewed.lease then
    redis.call('HSET', leases, renewed.key, nonce .. ' ' .. version .. ' ' .. now + ${LEASE_MS})
    redis.call('PEXPIRE', leases, '${LEASE_MS}')
  end
end
local cooling = math.min(math.ceil(asked.cooldownMs or 0), ${MAX_COOLDOWN_MS})
if cooling > cooldown then
  redis.call('HSET', account, 'c', now + cooling)
  life = cooling
end
if revoked then
  ${EPOCH_OF}${SESSION_OF}${VERSIONS}
  local isRevoked, epochOfAll = lookAt(revoked.id or '', revoked.epoch, revoked.lifeMs)
  if revoked.id then
    redis.call('HSET', account, 's' .. revoked.id, now + revoked.lifeMs)
    if isRevoked == 0 then
      isChange = true
      redis.call('HSET', account, 'X', now)
    end
  end
  for _, field in ipairs(fieldsOf(account, 's')) do
    if tonumber(redis.call('HGET', account, field)) <= now then redis.call('HDEL', account, field) end
  end
  local left = fieldsOf(account, 's')
  if #left > ${MAX_REVOKED} then
    redis.call('HSET', account, 'x', epochOfAll + 1)
    redis.call('HDEL', account, unpack(left))
  end
  keep(revoked.lifeMs)
end
return answer(true)`;
