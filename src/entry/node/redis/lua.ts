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

/** How long it is taken for known how full the memory is. To ask takes as long as all else of a save. */
const MEMORY_MS = 100;

/**
 * What all scripts but `session` begin with. They refuse to run on a replica and on a primary without its replicas, since
 * they may write; `allow-oom` lets them run where memory is full, and they look at the memory themselves.
 *
 * KEYS: id of the share; account; then what the script names. The id is a hash: `id`, a line of what is known of it, `n`
 * number of changes so far, `v` version of the protocol, `m` how full the memory was (part, what one account may hold, when).
 * The account is one hash:
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
 * channel on which changes are published, empty where they are not; then what the script names. Replies: the token of the
 * id; the number of changes, this one included; then what the script names.
 *
 * Reads pass and reply by position, which costs less than JSON. A function, a table or a text is made anew at each call and
 * collected later, which costs more than to use it: what only one branch needs is made within that branch.
 */
export const IDENTITY = `#!lua flags=allow-oom
${NOW}
local seed, known, ago, window, channel = unpack(ARGV, 1, 5)

local stored = redis.pcall('HMGET', KEYS[1], 'id', 'n', 'v', 'm')
-- Text, of an earlier version: it is none. An instance of that version that still runs cannot read the hash in its place, so
-- it has no store: it would change things without announcing them.
if stored.err then
  if not string.find(stored.err, 'WRONGTYPE', 1, true) then return stored end
  redis.call('DEL', KEYS[1])
  stored = {}
end
local id, number, protocol = stored[1] or '', tonumber(stored[2] or 0), stored[3] or '0'
if protocol ~= '${PROTOCOL}' and tonumber(protocol) > ${PROTOCOL} then
  return redis.error_reply('PROTOCOL The store is used by gateways of a later version (protocol ' .. protocol
    .. ', this one has ${PROTOCOL}): upgrade this gateway.')
end
-- Its run and its line of replication have 40 digits each. To search for patterns takes longer than to cut.
local run, idLine = string.sub(id, 1, 40), string.sub(id, 42, 81)
local token, since, past = string.match(id, '^(%S+) (%d+) ?(.*)$', 83)
since = tonumber(since)

local replication = redis.call('INFO', 'replication')
local _, at = string.find(replication, 'master_replid:', 1, true)
local line = string.sub(replication, at + 1, at + 40)
local isAnother, before = false, ''
-- Each primary begins a line of replication when it starts, is promoted, or gets its first replica. In the last case it is
-- the same, and remembers no other line.
if idLine ~= line or not string.find(replication, 'role:master', 1, true) then
  local server, idRun = redis.call('INFO', 'server'), run
  run = string.match(server, 'run_id:(%x+)')
  if run ~= idRun or not string.find(replication, 'master_replid2:0+%s') then
    local isOld = string.match(server, 'uptime_in_seconds:(%-?%d+)') * 1000 > tonumber(window)
    isAnother, since = true, id == '' and known == '' and isOld and 0 or now
  end
end
-- The caller has seen another store, unless this one had that token before.
if known ~= token and known ~= '' and not isAnother then
  local knownAt = now - ago
  if since < knownAt and not string.find(past, known, 1, true) then
    isAnother, since, before = true, knownAt, string.sub(token .. ' ' .. past, 1, 250)
  end
end
if isAnother then
  token, past = string.sub(run, 1, ${NODE_LENGTH}) .. seed, before -- tokens show which shares are on one node
end
if isAnother or idLine ~= line or since > now or protocol ~= '${PROTOCOL}' then
  since = math.min(since, now) -- the clock was set back
  local renewed = run .. ' ' .. line .. ' ' .. token .. ' ' .. since .. ' ' .. past
  redis.call('HSET', KEYS[1], 'id', renewed, 'v', ${PROTOCOL})
end
`;

/** The end is no sooner than that. `hasEnd`: a new one has none yet. */
export const prolong = (key: string, ms: string, hasEnd: string) => `
if ${hasEnd} or redis.call('PEXPIRE', ${key}, ${ms}, 'NX') == 0 then redis.call('PEXPIRE', ${key}, ${ms}, 'GT') end
`;

/** Its state, and more fields of it. */
const fieldsAnd = (more: string) => `redis.call('HMGET', account, 'i', 'e', 'm', 'c'${more})`;

/** What is known of an account. */
export const accountOf = (more = '') => `
local isOther = now - since < tonumber(window)
local account = KEYS[2]
local found = ${fieldsAnd(more)}
local made, epoch, packed, cooldown = found[1], found[2], found[3], 0
if found[4] then cooldown = math.max(0, found[4] - now) end
local isKnown = made
if made ~= token then epoch = false end
if cooldown > ${MAX_COOLDOWN_MS} then cooldown = 0 end
-- How long the account is kept from now on, if that is longer than before.
local life = 0
-- Whether the marks, versions or revoked sessions of the account, or the epoch of these, differ from what others may know.
local isChange = false
`;

/** Last of all. The first two of a reply are the token and the number. */
export const END = `
if life > 0 then
  ${prolong('account', 'life', 'isKnown')}
end
if isChange and channel ~= '' then
  number = number + 1
  redis.call('HSET', KEYS[1], 'n', number)
  redis.pcall('PUBLISH', channel, number .. ' ' .. token .. ' ' .. string.match(account, ':a:(.*)$')) -- the user may not
end
reply[2] = number
return reply`;

/** To renew versions. */
export const VERSIONS = `
local function keep(ms) life = math.max(life, math.ceil(ms)) end
local function fieldsOf(hash, kind)
  local fields = {}
  for _, field in ipairs(redis.call('HKEYS', hash)) do
    if string.sub(field, 1, 1) == kind then fields[#fields + 1] = field end
  end
  return fields
end
local function renewAll()
  local tags = made and fieldsOf(account, 't') or {}
  if #tags > 0 then redis.call('HDEL', account, unpack(tags)) end
  epoch, made = seed, token
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
`;

/** The call in JSON, as `store/shared/engine.ts` has it, and the value of its copy or record. */
export const ASKED = `
local asked, value = cjson.decode(ARGV[6]), ARGV[7]
local function answer(asJson, ...)
  local reply = { token, number, cjson.encode(asJson), ... }
  ${END}
end
`;

/** Those of the account that stand; new versions for what expired ones have hidden. Only where some are there, or needed. */
export const MARKS = `
-- A mark: nonce, state (w: under way, u: unknown), until when it is under way, until when it stands, purchase,
-- whether it has a key (1 or 0), tags, when it was set.
local NONCE, STATE, BUSY, STANDS, PURCHASE, KEY, TAGS, SET = 1, 2, 3, 4, 5, 6, 7, 8
local marks = packed and cmsgpack.unpack(packed) or {}
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
local areOld = false
for _, mark in ipairs(marks) do
  local ahead = (mark[SET] or now) - now
  if ahead > 0 then
    mark[BUSY], mark[STANDS], mark[SET], areOld = mark[BUSY] - ahead, mark[STANDS] - ahead, now, true
  end
end
for _, mark in ipairs(packed and without(function(mark) return mark[STANDS] <= now end) or {}) do
  renew(mark[TAGS])
  areOld = true
end
if areOld then writeMarks() end
`;

/** For writes: to find and to set one. */
export const OWN_MARK = `
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
`;

/** What marks hide, by the names that tags have in the account. Where marks have expired, its fields are read again. */
export const hiddenOf = (more: string) => `
local hidden
if packed then
  ${VERSIONS}${MARKS}
  hidden = {}
  for _, mark in ipairs(marks) do
    for _, tag in ipairs(mark[TAGS]) do hidden['t' .. tag] = true end
  end
  if areOld then found = ${fieldsAnd(more)} end
end
`;

/** Whether a key whose tags are ARGV from `field` on is hidden. */
export const IS_HIDDEN = `
local isHidden = hidden and hidden['t*']
for place = field, hidden and field + tags - 1 or 0 do isHidden = isHidden or hidden[ARGV[place]] end
`;

/** Its version. The fifth of `found` is that of ARGV[fields]. */
export const VERSION = `
local current = epoch
for place = field, field + tags - 1 do current = current .. '.' .. (found[place - fields + 5] or '0') end
current = string.sub(redis.sha1hex(current), 1, 16)
`;

/** The header of a copy has 34 bytes. */
export const HEADER = '>c16I6I6I6';

/**
 * The epoch of all is at least the session's, and kept while sessions are used, which they are every seven days. Whether it is
 * revoked (1 or 0), the epoch, and how long ago something was revoked.
 */
export const SESSION_OF = `
local function sessionOf(least, lifeMs, revoked, stored, changedAt)
  local epochOfAll = math.max(epochOf(stored), tonumber(least or 0))
  if epochOfAll > epochOf(stored) then
    isChange, changedAt = true, now
    redis.call('HSET', account, 'x', epochOfAll, 'X', now)
  end
  if epochOfAll > 0 and redis.call('PTTL', account) < lifeMs / 2 then life = math.max(life, lifeMs) end
  return revoked and 1 or 0, epochOfAll, sinceOf(changedAt)
end
local function lookAt(id, least, lifeMs)
  return sessionOf(least, lifeMs, unpack(redis.call('HMGET', account, 's' .. id, 'x', 'X')))
end
`;

/** The part of the memory that is used, and what one account may hold of it, as it was a moment ago. */
export const MEMORY = `
local function memory()
  local part, most, asOf = string.match(stored[4] or '', '^(%S+) (%S+) (%S+)$')
  if not asOf or now < tonumber(asOf) or now - asOf >= ${MEMORY_MS} then
    local info = redis.call('INFO', 'memory')
    part, most = 0, tonumber(string.match(info, 'maxmemory:(%d+)'))
    if most > 0 then part = string.match(info, 'used_memory:(%d+)') / most end
    most = most > 0 and most / 16 or ${MAX_HELD_BYTES}
    redis.call('HSET', KEYS[1], 'm', part .. ' ' .. most .. ' ' .. now)
  end
  return tonumber(part), tonumber(most)
end
`;
