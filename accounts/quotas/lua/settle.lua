-- asked: id, tokens. The place is free; of the minute's tokens those are kept that were used; and where none were, it is
-- as if there had been no request.
local value = redis.call('HGET', kept, asked.id)
if not value then return 0 end
local tokens, pool = split(value)
local member = tokens .. ':' .. asked.id
local since = redis.call('ZSCORE', minute, member)
redis.call('ZREM', minute, member)
if since and asked.tokens > 0 then redis.call('ZADD', minute, since, string.format('%d:%s', asked.tokens, asked.id)) end
if asked.tokens == 0 then redis.call('ZREM', window_of(pool), asked.id) end
leave_place(asked.id)
return 1
