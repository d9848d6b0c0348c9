-- asked: id, pool, age_ms of a request that was counted elsewhere, and `tokens` where it is still under way. Others than
-- those whom this Redis knows are filled from the database anyway.
if redis.call('EXISTS', known, window_of(asked.pool)) < 2 then return 0 end
if asked.tokens then take_place(asked.id, asked.tokens, asked.pool, now - asked.age_ms) end
return redis.call('ZADD', window_of(asked.pool), 'NX', now - asked.age_ms, asked.id)
