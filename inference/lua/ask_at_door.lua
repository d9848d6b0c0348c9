-- ARGV: the request's id, class, ms after which it is forgotten unless it comes, and how long its class may wait: ms that
-- are always borne, answers' durations that are, ms that never are; most others where the wait is not known; then the
-- model, the share of the longest wait beyond which another model is looked at, and that model or ''; and the user.
-- Returns the model that the request is let in to or '' for none, its expected wait in ms (-1: unknown), and the longest.
local id, rank, keep_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local borne_ms, borne_answers, never_ms = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local most_unknown = tonumber(ARGV[7])
local wanted, share, other, user = ARGV[8], tonumber(ARGV[9]), ARGV[10], ARGV[11]
local permits = capacities()

-- As many as wait in the user's class; or, for who has more waiting than others, as if all of them had as many: else one
-- who sends a lot would take the room that is left for everybody.
local function waiting_in_class(alias)
  local own = redis.call('ZCARD', name('user', alias, rank, user))
  local users = redis.call('ZCARD', name('shares', alias, rank))
  return math.max(redis.call('ZCARD', name('waiting', alias, rank)), own * users)
end

local function look_at(alias)
  local ahead = waiting_in_class(alias) + live_count(name('door', alias, rank))
  for urgent = 0, rank - 1 do
    ahead = ahead + redis.call('ZCARD', name('waiting', alias, urgent)) + live_count(name('door', alias, urgent))
  end
  local service = tonumber(redis.call('HGET', name('service'), alias)) or SUPPOSED_SERVICE_MS
  local longest = math.min(never_ms, math.max(borne_ms, borne_answers * service))
  local wait = expected_wait(alias, ahead, permits[alias])
  return {alias = alias, ahead = ahead, wait = wait, longest = longest}
end

local chosen = look_at(wanted)
if other ~= '' and chosen.wait and chosen.wait > share * chosen.longest then
  local smaller = look_at(other)
  if smaller.wait and smaller.wait < chosen.wait then chosen = smaller end
end
local is_let_in
if chosen.wait then is_let_in = chosen.wait <= chosen.longest else is_let_in = chosen.ahead < most_unknown end
if is_let_in then
  redis.call('ZADD', name('door', chosen.alias, rank), now + keep_ms, id)
  redis.call('PEXPIRE', name('door', chosen.alias, rank), keep_ms)
end
return {is_let_in and chosen.alias or '', chosen.wait or -1, math.ceil(chosen.longest)}
