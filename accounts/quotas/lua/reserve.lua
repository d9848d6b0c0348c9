-- asked: id, pool, requests, window_ms, tokens; where they hold, per_minute, concurrent; and, when they are known, `past`:
-- the ages in ms of the window's requests by id, `minute` (id, tokens, age) and `under_way` (id, tokens, pool, age).
--
-- Answers nil where this Redis does not know the user: the caller comes again with what the database knows. Everything
-- is checked before anything is written: a refusal counts nowhere. Who is refused for want of a place is told who holds
-- them, and since how many ms, so that the caller can find out who of them is gone.
local window = window_of(asked.pool)
if not knows(asked.pool, asked.window_ms) then
  local past = asked.past
  if not past then return nil end
  learn_under_way(past)
  learn_window(window, asked.window_ms, past.requests)
end
forget_the_past(window, asked.window_ms)

local used, resets_ms = requests_in(window, asked.requests, asked.window_ms)
local tokens, minute_ms = tokens_in_minute(asked.per_minute, asked.tokens)
local under_way = redis.call('ZCARD', places)

local refused_by = ''
if redis.call('HEXISTS', kept, asked.id) == 0 then
  if used >= asked.requests and not redis.call('ZSCORE', window, asked.id) then
    refused_by = 'requests'
  elseif asked.per_minute and tokens > 0 and tokens + asked.tokens > asked.per_minute then
    refused_by = 'minute'
  elseif asked.concurrent and under_way >= asked.concurrent then
    refused_by = 'places'
  else
    redis.call('ZADD', window, 'NX', now, asked.id)
    if asked.tokens > 0 then redis.call('ZADD', minute, now, string.format('%d:%s', asked.tokens, asked.id)) end
    take_place(asked.id, asked.tokens, asked.pool, now)
    remember(window, asked.window_ms)
    used, resets_ms = requests_in(window, asked.requests, asked.window_ms)
  end
end

local holders = {}
if refused_by == 'places' then
  local held = redis.call('ZRANGE', places, 0, -1, 'WITHSCORES')
  for i = 1, #held, 2 do
    table.insert(holders, held[i])
    table.insert(holders, now + PLACE_MS - held[i + 1])
  end
end
return {refused_by, used, resets_ms, tokens, minute_ms, under_way, holders}
