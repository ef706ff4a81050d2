-- own.lua - the end of making a shared queue one that a process owns.  What nobody shares any more
-- goes; the highest stamp stays, so that a later one is higher still.
--
-- KEYS  3 meta  4 writers, then what goes as a whole
-- Answers 1.
local lanes = {}
for _, field in ipairs(call('HKEYS', KEYS[4])) do
    if string.find(field, '^%d+:[pw]$') or string.find(field, '^turn ') then
        lanes[#lanes + 1] = field
    end
end
for i = 1, #lanes, 1000 do
    call('HDEL', KEYS[4], unpack(lanes, i, math.min(i + 999, #lanes)))
end
call('DEL', unpack(KEYS, 5))
call('HSET', KEYS[3], 'format', '1', 'least_reader', '1', 'mode', 'owner')
return 1
