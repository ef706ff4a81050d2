-- ranks.lua - a page of the jobs of a topic enters `o`, where a queue in the order of priority has
-- them besides (by_rank.lua).
--
-- KEYS  4 t:TOPIC  5 o:TOPIC
-- ARGV  5 how many were entered before  6 how many are, at most
-- Answers how many these are.
local page = call('ZRANGE', KEYS[4], ARGV[5], ARGV[5] + ARGV[6] - 1, 'WITHSCORES')
for i = 1, #page, 2 do
    local id = page[i]
    page[i], page[i + 1] = 0,
        string.sub(id, 1, 1) .. form('%016.0f', page[i + 1]) .. string.sub(id, 2)
end
if #page > 0 then
    call('ZADD', KEYS[5], unpack(page))
end
return #page / 2
