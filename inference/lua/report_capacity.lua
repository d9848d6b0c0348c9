-- ARGV: the worker, how many answers it writes at once at most, and as JSON the permits of each model's replicas.
local report = cjson.encode({at = now, room = tonumber(ARGV[2]), permits = cjson.decode(ARGV[3])})
redis.call('HSET', name('capacity'), ARGV[1], report)
redis.call('PEXPIRE', name('capacity'), REPORT_MS)
return 1
