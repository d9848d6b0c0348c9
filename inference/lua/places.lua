-- ARGV: ids. Returns for each job that waits its place, 1 for the next one, and the ms until it may begin (-1: unknown);
-- for others 0 and -1.
local permits = capacities()
local answer = {}

local function ahead_of(id)
  local text = redis.call('HGET', name('jobs'), id)
  if not text then return nil end
  local alias, rank, user = unpack(cjson.decode(text))
  local member = redis.call('HGET', name('members', alias, rank), user)
  local before = member and redis.call('ZRANK', name('shares', alias, rank), member)
  local own = redis.call('ZRANK', name('user', alias, rank, user), id)
  if not before or not own then return nil end
  -- Users take turns, so each job of one's own before this one lets about one of everybody else's go first.
  local ahead = own * redis.call('ZCARD', name('shares', alias, rank)) + before
  ahead = math.min(ahead, redis.call('ZCARD', name('waiting', alias, rank)) - 1)
  for urgent = 0, rank - 1 do ahead = ahead + redis.call('ZCARD', name('waiting', alias, urgent)) end
  return ahead, alias
end

for _, id in ipairs(ARGV) do
  local ahead, alias = ahead_of(id)
  table.insert(answer, ahead and ahead + 1 or 0)
  table.insert(answer, ahead and expected_wait(alias, ahead, permits[alias]) or -1)
end
return answer
