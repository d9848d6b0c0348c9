-- ARGV: the holder, the model, class, user, tokens to add to the user's counter, how many ms the permit was held (-1: do
-- not learn from it), and the urls of the replicas at which there may be a permit.
local holder, alias, service_ms = ARGV[1], ARGV[2], tonumber(ARGV[6])
local WEIGHT_OF_THE_LATEST = 0.05
for i = 7, #ARGV do redis.call('ZREM', name('permits', ARGV[i]), holder) end
runs_no_more(holder, alias)
charge(alias, ARGV[3], ARGV[4], ARGV[5])
if service_ms >= 0 then
  local mean = tonumber(redis.call('HGET', name('service'), alias)) or service_ms
  mean = mean + WEIGHT_OF_THE_LATEST * (service_ms - mean)
  redis.call('HSET', name('service'), alias, string.format('%.3f', mean))
end
wake_if_anything_waits()
return 1
