-- ARGV: the ids of waiting jobs. Returns how many there were.
local removed = 0
for _, id in ipairs(ARGV) do
  if withdraw(id) then removed = removed + 1 end
end
return removed
