-- asked: a list of ids that hold places, and are gone.
for _, id in ipairs(asked) do leave_place(id) end
return #asked
