-- wrk ... -s load.lua URL -- ACCOUNTS FIRST METHOD BODY
-- A request that names {account} is sent for so many accounts in turn, one that names {key} with a key of its own each time.
-- FIRST is where the count begins. Accounts come in an order that is not the one in which they lie in memory.

local STRIDE = 7919 -- a prime: all accounts come before one comes twice

local function parts_of(template)
  local parts, from = {}, 1
  for at, name, to in template:gmatch('(){(%a+)}()') do
    if name == 'account' or name == 'key' then
      parts[#parts + 1] = template:sub(from, at - 1)
      parts[#parts + 1] = name
      from = to
    end
  end
  parts[#parts + 1] = template:sub(from)
  return parts
end

function init(args)
  local accounts, count = tonumber(args[1]), tonumber(args[2]) - 1
  wrk.method = args[3]
  if args[4] ~= '' then wrk.body = args[4] end
  local parts = parts_of(wrk.format())
  if #parts == 1 then return end -- always the same bytes: wrk sends them without asking
  local made = {}
  request = function()
    count = count + 1
    for i = 1, #parts do
      if i % 2 == 1 then made[i] = parts[i]
      elseif parts[i] == 'account' then made[i] = count * STRIDE % accounts
      else made[i] = count end
    end
    return table.concat(made)
  end
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\n{"answers":%d,"us":%d,"p50Us":%d,"p99Us":%d,"badStatus":%d,"broken":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), e.status,
    e.connect + e.read + e.write + e.timeout))
end
