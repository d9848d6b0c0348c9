-- What every script here begins with: the names of the keys, who waits, who is next, and how long it may take.
--
-- Classes are numbers, 0 the most urgent. Of each model (alias) and class there are:
--   waiting   sorted set: every job, by when it came
--   shares    sorted set: every user with a waiting job, by the tokens that were written for them; equals by turn
--   turns     the same members, by when the user's turn began to be due: when they came, or were last served
--   members   hash: user -> member of the two sets above, a number that grows and then the user
--   counters  sorted set: user -> tokens; also of users with nothing waiting, all of whom are forgiven once an hour
--   user:…    sorted set: one user's jobs, in the order in which they came
--   door      sorted set: requests that were let in and are on their way here, by when that is forgotten
-- Of each replica there is `permits`, of each model `running`: who holds a permit, by when it runs out; and of each model
-- `yielding`, those of them that give way to people.
local base, wake_channel = KEYS[1], KEYS[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local LEAST_URGENT = 3
local KEEP_SECONDS = 3600
local MOST_CORRECTION = 1000000
local SUPPOSED_SERVICE_MS = 5000
local REPORT_MS = 5000
local RENEWAL_MS = 2000
local GIVES_WAY = ' gives way'

local function name(...) return table.concat({base, ...}, ':') end

local function first(set)
  local found = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  return found[1], tonumber(found[2])
end

local function live_count(set)
  redis.call('ZREMRANGEBYSCORE', set, '-inf', now)
  return redis.call('ZCARD', set)
end

local function wake_if_anything_waits()
  if redis.call('EXISTS', name('jobs')) == 1 then redis.call('PUBLISH', wake_channel, '') end
end

-- A user who comes back is lifted to the least of those who wait: time away earns no credit.
local function join(alias, rank, user, sequence)
  local _, least = first(name('shares', alias, rank))
  least = least or tonumber(redis.call('HGET', name('floors'), alias .. ':' .. rank)) or 0
  local counters = name('counters', alias, rank)
  local counter = math.max(least, tonumber(redis.call('ZSCORE', counters, user)) or 0)
  local member = string.format('%016d %s', sequence, user)
  redis.call('HSET', name('members', alias, rank), user, member)
  redis.call('ZADD', name('shares', alias, rank), counter, member)
  redis.call('ZADD', name('turns', alias, rank), now, member)
  redis.call('ZADD', counters, counter, user)
  redis.call('ZREMRANGEBYSCORE', counters, '-inf', least - MOST_CORRECTION)
  -- Not put off by those who come: else it would hold everybody who ever asked.
  redis.call('EXPIRE', counters, KEEP_SECONDS, 'NX')
end

local function leave(alias, rank, user)
  local member = redis.call('HGET', name('members', alias, rank), user)
  if member then
    redis.call('HDEL', name('members', alias, rank), user)
    redis.call('ZREM', name('shares', alias, rank), member)
    redis.call('ZREM', name('turns', alias, rank), member)
  end
  for other = 0, LEAST_URGENT do
    if redis.call('EXISTS', name('waiting', alias, other)) == 1 then return end
  end
  redis.call('ZREM', name('aliases'), alias)
end

-- Takes a waiting job out of everything; returns what is known of it.
local function withdraw(id)
  local text = redis.call('HGET', name('jobs'), id)
  if not text then return nil end
  local alias, rank, user, estimate, deadline, came = unpack(cjson.decode(text))
  redis.call('HDEL', name('jobs'), id)
  redis.call('ZREM', name('deadlines'), id)
  redis.call('ZREM', name('waiting', alias, rank), id)
  local own = name('user', alias, rank, user)
  redis.call('ZREM', own, id)
  if redis.call('EXISTS', own) == 0 then leave(alias, rank, user) end
  return {id = id, alias = alias, rank = rank, user = user, estimate = estimate, deadline = deadline, came = came}
end

local function charge(alias, rank, user, tokens)
  local counters = name('counters', alias, rank)
  local member = redis.call('HGET', name('members', alias, rank), user)
  local counter = redis.call('ZSCORE', counters, user)
  if not counter and member then counter = redis.call('ZSCORE', name('shares', alias, rank), member) end
  if not counter then return end
  counter = tonumber(counter) + tokens
  redis.call('ZADD', counters, counter, user)
  redis.call('EXPIRE', counters, KEEP_SECONDS, 'NX')
  if member then redis.call('ZADD', name('shares', alias, rank), 'XX', counter, member) end
end

local function hold(holder, alias, url, lease_ms)
  local sets = {name('permits', url), name('running', alias)}
  if string.sub(holder, -#GIVES_WAY) == GIVES_WAY then table.insert(sets, name('yielding', alias)) end
  for _, set in ipairs(sets) do
    redis.call('ZADD', set, now + lease_ms, holder)
    redis.call('PEXPIRE', set, lease_ms)
  end
end

local function runs_no_more(holder, alias)
  redis.call('ZREM', name('running', alias), holder)
  redis.call('ZREM', name('yielding', alias), holder)
end

-- A Redis that was emptied does not know who holds permits until every worker has had the time to renew its own.
local function may_give_permits()
  local from = tonumber(redis.call('GET', name('gives_permits_from')))
  if not from then
    from = now + RENEWAL_MS
    redis.call('SET', name('gives_permits_from'), from)
  end
  return now >= from
end

-- Permits that the replicas of each model give now, as the workers last reported, and no more than these can use.
local function capacities()
  local permits, room = {}, 0
  local reports = redis.call('HGETALL', name('capacity'))
  for i = 1, #reports, 2 do
    local report = cjson.decode(reports[i + 1])
    if now - report.at > REPORT_MS then
      redis.call('HDEL', name('capacity'), reports[i])
    else
      room = room + report.room
      for alias, count in pairs(report.permits) do permits[alias] = math.max(permits[alias] or 0, count) end
    end
  end
  for alias, count in pairs(permits) do permits[alias] = math.min(count, room) end
  return permits
end

-- Milliseconds until a job with `ahead` others before it is begun; nil where no replica is known to be there. What gives
-- way is not in its way.
local function expected_wait(alias, ahead, permits)
  if not permits or permits <= 0 then return nil end
  local running = live_count(name('running', alias)) - live_count(name('yielding', alias))
  local over = ahead + 1 + running - permits
  if over <= 0 then return 0 end
  local service = tonumber(redis.call('HGET', name('service'), alias)) or SUPPOSED_SERVICE_MS
  return math.ceil(over * service / permits)
end
