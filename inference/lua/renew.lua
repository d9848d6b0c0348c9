-- ARGV: lease ms, '1' to take what is missing again, how many permits, for each the holder, the model and the url, and
-- then the urls of replicas to count.
-- Returns the places (from 1) of permits that are missing, and of each replica its url and holders.
-- What is missing is not simply taken again: it may have been given back while this call was on its way.
local lease_ms, takes_again, count = tonumber(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3])
local missing, seen = {}, {}
for i = 1, count do
  local holder, alias, url = ARGV[3 * i + 1], ARGV[3 * i + 2], ARGV[3 * i + 3]
  if takes_again or redis.call('ZSCORE', name('permits', url), holder) then
    hold(holder, alias, url, lease_ms)
  else
    table.insert(missing, i)
  end
end
for i = 3 * count + 4, #ARGV do
  table.insert(seen, ARGV[i])
  table.insert(seen, live_count(name('permits', ARGV[i])))
end
return {missing, seen}
