-- ARGV: the holder, lease ms, the model, the url of the permit that it holds or '', and what it wants as JSON:
-- [[url, permits], ...], best first.
-- Returns the url of the permit that it holds now or '', then of each replica that was looked at, its url and holders.
local holder, lease_ms, alias, present = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local held = ''
local seen = {}
local may_give = may_give_permits()
for _, offer in ipairs(cjson.decode(ARGV[5])) do
  local url, permits = offer[1], offer[2]
  local holders = live_count(name('permits', url))
  if url == present or may_give and holders < permits then
    hold(holder, alias, url, lease_ms)
    held = url
    holders = live_count(name('permits', url))
  end
  table.insert(seen, url)
  table.insert(seen, holders)
  if held ~= '' then break end
end
if present ~= '' and held ~= present then
  redis.call('ZREM', name('permits', present), holder)
  if held == '' then runs_no_more(holder, alias) end
  wake_if_anything_waits()
end
return {held, unpack(seen)}
