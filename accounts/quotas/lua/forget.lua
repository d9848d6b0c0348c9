-- asked: the pools that the user may have counts in. Nothing is left of them; answers how many keys there were.
local names = {known, minute, places, kept}
for _, pool in ipairs(asked) do table.insert(names, window_of(pool)) end
return redis.call('UNLINK', unpack(names))
