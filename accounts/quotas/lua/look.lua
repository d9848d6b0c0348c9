-- asked: a list of pools, each with pool, requests, window_ms. Answers nil where this Redis does not know all of them.
-- Nothing is counted: tokens of the minute, ms until the oldest leave, generations under way; then of each pool its
-- requests and in how many ms there are fewer.
local answer = {}
for _, each in ipairs(asked) do
  if not knows(each.pool) then return nil end
  forget_the_past(window_of(each.pool), each.window_ms)
end
local tokens, minute_ms = tokens_in_minute(nil, 0)
answer = {tokens, minute_ms, redis.call('ZCARD', places)}
for _, each in ipairs(asked) do
  local used, resets_ms = requests_in(window_of(each.pool), each.requests, each.window_ms)
  table.insert(answer, used)
  table.insert(answer, resets_ms)
end
return answer
