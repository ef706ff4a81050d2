-- clear.lua - a piece of a hash, or of a zset, goes that only a shared queue has.
--
-- KEYS  4 the key
-- ARGV  5 cursor of a scan, or z for a zset
-- Answers the next cursor; '0': that was the end.
if ARGV[5] == 'z' then
    call('ZREMRANGEBYRANK', KEYS[4], 0, 999)
    return call('EXISTS', KEYS[4]) == 1 and 'z' or '0'
end
local page = call('HSCAN', KEYS[4], ARGV[5], 'COUNT', 500)
local names = {}
for i = 1, #page[2], 2 do
    names[#names + 1] = page[2][i]
end
for i = 1, #names, 1000 do
    call('HDEL', KEYS[4], unpack(names, i, math.min(i + 999, #names)))
end
return page[1]
