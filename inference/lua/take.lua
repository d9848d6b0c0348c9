-- ARGV: how many at most, ageing ms, lease ms, the worker, ms after which a job of an unknown model is handed out,
-- the offers as JSON: {model: [[url, permits], ...]}, and how many of the least urgent class at most.
-- Returns three lists: for each job id, model, class, user, estimated tokens, deadline, ms waited, url or '', and 1 where
-- it is of the least urgent class and goes before people; of each replica that was looked at, its url and the requests
-- that it has; of each model that has people waiting and no free place, its alias and how many they are.
local most, ageing_ms, lease_ms = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local worker, unknown_ms, offers = ARGV[4], tonumber(ARGV[5]), cjson.decode(ARGV[6])
local background_left = tonumber(ARGV[7])
local TAKES_BETWEEN_JUMPS = 4
local holders = {}
local taken = {}
local may_give = may_give_permits()

-- In its turn the least urgent class leaves the last free place of several to whoever comes.
local function least_loaded(alias, leaves_one)
  local best, best_load
  for _, offer in ipairs(offers[alias]) do
    local url, permits = offer[1], offer[2]
    holders[url] = holders[url] or live_count(name('permits', url))
    local load = holders[url] / math.max(permits, 1)
    local usable = leaves_one and permits > 1 and permits - 1 or permits
    if may_give and holders[url] < usable and (not best or load < best_load) then best, best_load = url, load end
  end
  return best
end

-- Who is next of a model: the most urgent class's user with the fewest tokens. At most one take in five goes, out of
-- turn, to a user whose turn has been due for long: each `ageing_ms` counts as one class more urgent.
local function head(alias)
  local next_one
  local least_urgent = background_left > 0 and LEAST_URGENT or LEAST_URGENT - 1
  for rank = 0, least_urgent do
    local member, counter = first(name('shares', alias, rank))
    if member then
      next_one = {rank = rank, urgency = rank, member = member, waited = 0}
      break
    end
  end
  if not next_one then return nil end
  local takes = tonumber(redis.call('HGET', name('state'), 'since_jump:' .. alias)) or TAKES_BETWEEN_JUMPS
  if takes < TAKES_BETWEEN_JUMPS then return next_one end
  local in_turn = next_one
  for rank = in_turn.rank, least_urgent do
    local member, due = first(name('turns', alias, rank))
    local waited = member and now - due or 0
    local urgency = rank - math.floor(waited / ageing_ms)
    local is_sooner = urgency < next_one.urgency or (urgency == next_one.urgency and waited > next_one.waited)
    if waited >= ageing_ms and is_sooner then
      next_one = {
        rank = rank, urgency = urgency, member = member, waited = waited, is_jump = member ~= in_turn.member,
        is_before_people = rank == LEAST_URGENT and in_turn.rank < LEAST_URGENT
      }
    end
  end
  return next_one
end

local function hand_out(job, url, is_before_people)
  table.insert(taken, {
    job.id, job.alias, job.rank, job.user, job.estimate, job.deadline, math.max(0, now - job.came), url or '',
    is_before_people and 1 or 0
  })
  if not url then return end
  local gives_way = job.rank == LEAST_URGENT and not is_before_people
  hold(job.id .. ' ' .. worker .. (gives_way and GIVES_WAY or ''), job.alias, url, lease_ms)
  holders[url] = holders[url] + 1
end

local function take_overdue()
  local id = redis.call('ZRANGEBYSCORE', name('deadlines'), '-inf', now, 'LIMIT', 0, 1)[1]
  local job = id and withdraw(id)
  if id and not job then redis.call('ZREM', name('deadlines'), id) end
  if job then hand_out(job, nil) end
  return id ~= nil and id ~= false
end

local function take_of_unknown_model(alias)
  for rank = 0, LEAST_URGENT do
    local id, came = first(name('waiting', alias, rank))
    if id and now - came >= unknown_ms then
      local job = withdraw(id)
      if job then hand_out(job, nil) else redis.call('ZREM', name('waiting', alias, rank), id) end
      return true
    end
  end
  return false
end

-- Of a job that a full Redis has thrown away; whoever enqueues it again makes it whole.
local function forget_remains(alias, rank, user, member, id)
  if id then
    redis.call('ZREM', name('user', alias, rank, user), id)
    redis.call('ZREM', name('waiting', alias, rank), id)
    return
  end
  redis.call('ZREM', name('shares', alias, rank), member)
  redis.call('ZREM', name('turns', alias, rank), member)
  leave(alias, rank, user)
end

local function take_next()
  local best
  for _, alias in ipairs(redis.call('ZRANGE', name('aliases'), 0, -1)) do
    if not offers[alias] then
      if take_of_unknown_model(alias) then return true end
    else
      local url = least_loaded(alias)
      local candidate = url and head(alias)
      if candidate and candidate.rank == LEAST_URGENT and not candidate.is_before_people then
        url = least_loaded(alias, true)
      end
      if candidate and url and (not best or candidate.urgency < best.urgency) then
        best = candidate
        best.alias, best.url = alias, url
      end
    end
  end
  if not best then return false end
  local alias, rank = best.alias, best.rank
  local user = string.match(best.member, ' (.+)$')
  local id = redis.call('ZRANGE', name('user', alias, rank, user), 0, 0)[1]
  local counter = tonumber(redis.call('ZSCORE', name('shares', alias, rank), best.member)) or 0
  local job = id and withdraw(id)
  if not job then
    forget_remains(alias, rank, user, best.member, id)
    return true
  end
  local floor = tonumber(redis.call('HGET', name('floors'), alias .. ':' .. rank)) or 0
  if not best.is_jump and counter > floor then
    redis.call('HSET', name('floors'), alias .. ':' .. rank, string.format('%.0f', counter))
  end
  charge(alias, rank, user, job.estimate)
  redis.call('ZADD', name('turns', alias, rank), 'XX', now, best.member)
  if best.is_jump then
    redis.call('HSET', name('state'), 'since_jump:' .. alias, 0)
  else
    redis.call('HINCRBY', name('state'), 'since_jump:' .. alias, 1)
  end
  local turn = redis.call('HINCRBY', name('state'), 'turn', 1)
  redis.call('HSET', name('state'), 'taken:' .. alias, turn)
  redis.call('ZADD', name('aliases'), 'XX', turn, alias)
  if rank == LEAST_URGENT then background_left = background_left - 1 end
  hand_out(job, best.url, best.is_before_people)
  return true
end

local function waiting_people(alias)
  local count = 0
  for rank = 0, LEAST_URGENT - 1 do count = count + redis.call('ZCARD', name('waiting', alias, rank)) end
  return count
end

while #taken < most and (take_overdue() or take_next()) do end

local seen = {}
for url, count in pairs(holders) do
  table.insert(seen, url)
  table.insert(seen, count)
end
local without_place = {}
for _, alias in ipairs(may_give and redis.call('ZRANGE', name('aliases'), 0, -1) or {}) do
  local people = offers[alias] and waiting_people(alias) or 0
  if people > 0 and not least_loaded(alias) then
    table.insert(without_place, alias)
    table.insert(without_place, people)
  end
end
return {taken, seen, without_place}
