-- head.lua - how put, work and edit begin: is the writer still one of us, and is this exchange new?
--
-- KEYS  1 fence  2 writers  3 c  4 h  5 w  6 j  7 a  8 dead  9 b  10 topics  11 p  12 owner; then
--       of each topic t:TOPIC  l:TOPIC  w:TOPIC; of each g:TOPIC; in the order of priority of
--       each o:TOPIC (by_rank.lua); and the last seven of all, see room.lua, groups.lua and
--       keys.lua
-- ARGV  1 fence  2 lane  3 number  4 the highest stamp that the process has seen
--       5 what its channels begin with  6 writer, then the name of each topic
--
-- Answers {'F'}: fenced for good.  {'L', last}: the server has lost this writer, or what came after
-- the number `last`; another fence of a shared queue is that of one made anew.  {'P'}: a later
-- number was served already.
-- Behind this: `again`, a number that was served is sent once more and must get the same answer;
-- `stamp` and `now` (in us) of this exchange, or of the one that is repeated; `latest`, the highest
-- stamp there is; `capacity`, nil: none.
local call, form = redis.call, string.format
local fence = call('GET', KEYS[1])
if fence ~= ARGV[1] then
    return {fence and string.sub(fence, 1, 2) ~= 's:' and 'F' or 'L'}
end
local writer = call('HMGET', KEYS[2], ARGV[2], 'stamp', 'capacity')
if not writer[1] then
    return {'L'}
end
if writer[1] == 'X' then
    return {'F'}
end
local last, stamp, now = string.match(writer[1], '^(%d+) (%d+) (%d+)$')
local number, again = tonumber(ARGV[3]), false
local time = call('TIME')
local clock = time[1] * 1000000 + time[2]
last = tonumber(last)
if number < last then
    return {'P'}
end
if number > last + 1 then
    return {'L', last}
end
if number == last then
    again, stamp, now = true, tonumber(stamp), tonumber(now)
else
    now = clock
    stamp = math.max(tonumber(writer[2] or 0) + 1, tonumber(ARGV[4]), now)
end
local latest = math.max(stamp, tonumber(writer[2] or 0))
local topics = (#KEYS - 19) / EACH
local capacity, beats = tonumber(writer[3] or nil), false
local at = 7 + topics
