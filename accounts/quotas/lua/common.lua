-- What every script here begins with: the names of one user's keys, and what is in them.
--
--   known          there while this Redis knows what the user has under way; with it gone, nothing below says anything
--   requests:pool  sorted set: the requests of a pool's window, by when they were counted; at its end a mark that keeps
--                  it there when it is empty: that there were none is known, too. The mark tells the window's length:
--                  of a longer one, which a change of tier may bring, it says nothing
--   minute         sorted set: `tokens:id` of each wish of the last minute, by when it was counted
--   places         sorted set: the generations under way, by when they are given up
--   kept           hash: generation under way -> `tokens:pool`
-- Times are milliseconds of Redis' own clock.
local base = KEYS[1]
local asked = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local MINUTE_MS = 60000
local PLACE_MS = 86400000 -- longer than any generation can live

local known, minute, places, kept = base .. ':known', base .. ':minute', base .. ':places', base .. ':kept'

local function window_of(pool) return base .. ':requests:' .. pool end

local function split(value) return string.match(value, '^(%d+):(.*)$') end

local function mark_of(length_ms) return string.format('-%d', length_ms) end

local function knows_window(window, length_ms) return redis.call('ZSCORE', window, mark_of(length_ms)) end

local function knows(pool, length_ms)
  return redis.call('EXISTS', known) == 1 and knows_window(window_of(pool), length_ms)
end

local function remember(window, length_ms)
  redis.call('ZADD', window, '+inf', mark_of(length_ms))
  redis.call('PEXPIRE', window, length_ms)
  redis.call('PEXPIRE', minute, MINUTE_MS)
  redis.call('PEXPIRE', places, PLACE_MS)
  redis.call('PEXPIRE', kept, PLACE_MS)
  redis.call('SET', known, 1, 'PX', math.max(PLACE_MS, length_ms))
end

local function take_place(id, tokens, pool, since)
  redis.call('ZADD', places, since + PLACE_MS, id)
  redis.call('HSET', kept, id, string.format('%d:%s', tokens, pool))
end

local function leave_place(id)
  redis.call('ZREM', places, id)
  redis.call('HDEL', kept, id)
end

-- Take over what the database knows: of a window, then of what is under way. What is there already is newer.
local function learn_window(window, length_ms, requests)
  if not knows_window(window, length_ms) then
    redis.call('DEL', window)
    for id, age_ms in pairs(requests) do redis.call('ZADD', window, now - age_ms, id) end
  end
  remember(window, length_ms)
end

local function learn_under_way(past)
  if redis.call('EXISTS', known) == 1 then return end
  redis.call('DEL', minute, places, kept)
  for _, each in ipairs(past.minute) do redis.call('ZADD', minute, now - each[3], each[2] .. ':' .. each[1]) end
  for _, each in ipairs(past.under_way) do take_place(each[1], each[2], each[3], now - each[4]) end
end

local function forget_the_past(window, length_ms)
  redis.call('ZREMRANGEBYSCORE', window, '-inf', now - length_ms)
  redis.call('ZREMRANGEBYSCORE', minute, '-inf', now - MINUTE_MS)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', places, '-inf', now)) do leave_place(id) end
end

-- How many requests a window holds, and in how many ms there are fewer than its limit, or than now.
local function requests_in(window, limit, length_ms)
  local used = redis.call('ZCOUNT', window, '-inf', '(+inf')
  if used == 0 then return 0, 0 end
  local rank = math.max(0, used - math.max(1, limit))
  local leaves = redis.call('ZRANGE', window, rank, rank, 'WITHSCORES')[2]
  return used, leaves + length_ms - now
end

-- How many tokens the last minute holds, and in how many ms there is room for some more. Where these alone are more than
-- the limit there is room as soon as there is nothing else: nobody is locked out for ever.
local function tokens_in_minute(limit, wanted)
  local held, used, left = redis.call('ZRANGE', minute, 0, -1, 'WITHSCORES'), 0, 0
  for i = 1, #held, 2 do used = used + split(held[i]) end
  left = used
  for i = 1, #held, 2 do
    left = left - split(held[i])
    if left == 0 or not limit or left + wanted <= limit then return used, held[i + 1] + MINUTE_MS - now end
  end
  return used, 0
end
