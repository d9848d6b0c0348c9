-- asked: a list of pools, each with pool, requests, window_ms. Answers nil where this Redis does not know the user.
-- Nothing is counted: tokens of the minute, ms until the oldest leave, generations under way; then of each pool its
-- requests, -1 where they are not known, and in how many ms there are fewer.
if redis.call('EXISTS', known) == 0 then return nil end
for _, each in ipairs(asked) do forget_the_past(window_of(each.pool), each.window_ms) end
local tokens, minute_ms = tokens_in_minute(nil, 0)
local answer = {tokens, minute_ms, redis.call('ZCARD', places)}
for _, each in ipairs(asked) do
  local used, resets_ms = requests_in(window_of(each.pool), each.requests, each.window_ms)
  table.insert(answer, knows(each.pool) and used or -1)
  table.insert(answer, resets_ms)
end
return answer
