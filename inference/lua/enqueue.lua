-- ARGV: for each job: id, model, class, user, estimated tokens, deadline in seconds.
local added = 0

-- A Redis that is full may have thrown away a part.
local function waits_already(id, alias, rank, user)
  local member = redis.call('HGET', name('members', alias, rank), user)
  return redis.call('HEXISTS', name('jobs'), id) == 1
    and redis.call('ZSCORE', name('user', alias, rank, user), id)
    and member and redis.call('ZSCORE', name('shares', alias, rank), member)
    and redis.call('ZSCORE', name('waiting', alias, rank), id) and redis.call('ZSCORE', name('aliases'), alias)
end

for i = 1, #ARGV, 6 do
  local id, alias, rank, user = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3]
  local estimate, deadline = tonumber(ARGV[i + 4]), ARGV[i + 5]
  if not waits_already(id, alias, rank, user) then
    local sequence = redis.call('HINCRBY', name('state'), 'sequence', 1)
    redis.call('HSETNX', name('jobs'), id, cjson.encode({alias, rank, user, estimate, deadline, now}))
    redis.call('ZADD', name('deadlines'), deadline * 1000, id)
    redis.call('ZADD', name('waiting', alias, rank), 'NX', now, id)
    redis.call('ZADD', name('user', alias, rank, user), 'NX', sequence, id)
    redis.call('ZADD', name('aliases'), 'NX', redis.call('HGET', name('state'), 'taken:' .. alias) or 0, alias)
    local member = redis.call('HGET', name('members', alias, rank), user)
    if not member or not redis.call('ZSCORE', name('shares', alias, rank), member) then
      join(alias, rank, user, sequence)
    end
    added = added + 1
  end
  redis.call('ZREM', name('door', alias, rank), id)
end
if added > 0 then redis.call('PUBLISH', wake_channel, '') end
return added
