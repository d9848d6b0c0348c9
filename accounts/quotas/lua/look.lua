-- asked: `pools`, a list of pool, requests, window_ms; and, when it is known, `past`: `minute` and `under_way` as `reserve`
-- has them, and of each pool the ages in ms of its requests by id. Answers nil where this Redis does not know all of
-- this: the caller comes again with what the database knows.
-- Nothing is counted: tokens of the minute, ms until the oldest leave, generations under way; then of each pool its
-- requests, and in how many ms there are fewer.
local past = asked.past
for i, each in ipairs(asked.pools) do
  if not knows(each.pool, each.window_ms) then
    if not past then return nil end
    learn_under_way(past)
    learn_window(window_of(each.pool), each.window_ms, past.requests[i])
  end
  forget_the_past(window_of(each.pool), each.window_ms)
end
local tokens, minute_ms = tokens_in_minute(nil, 0)
local answer = {tokens, minute_ms, redis.call('ZCARD', places)}
for _, each in ipairs(asked.pools) do
  local used, resets_ms = requests_in(window_of(each.pool), each.requests, each.window_ms)
  table.insert(answer, used)
  table.insert(answer, resets_ms)
end
return answer
