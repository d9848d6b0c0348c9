-- ARGV: for each job: id, model, class, user, estimated tokens, deadline in seconds.
local added = 0
for i = 1, #ARGV, 6 do
  local id, alias, rank, user = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3]
  local estimate, deadline = tonumber(ARGV[i + 4]), ARGV[i + 5]
  if redis.call('HEXISTS', name('jobs'), id) == 0 then
    local sequence = redis.call('HINCRBY', name('state'), 'sequence', 1)
    redis.call('HSET', name('jobs'), id, cjson.encode({alias, rank, user, estimate, deadline, now}))
    redis.call('ZADD', name('deadlines'), deadline * 1000, id)
    redis.call('ZADD', name('waiting', alias, rank), now, id)
    redis.call('ZADD', name('user', alias, rank, user), sequence, id)
    redis.call('ZADD', name('aliases'), 'NX', redis.call('HGET', name('state'), 'taken:' .. alias) or 0, alias)
    if redis.call('HEXISTS', name('members', alias, rank), user) == 0 then join(alias, rank, user, sequence) end
    added = added + 1
  end
  redis.call('ZREM', name('door', alias, rank), id)
end
if added > 0 then redis.call('PUBLISH', wake_channel, '') end
return added
