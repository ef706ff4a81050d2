-- head.lua - how put, work and edit begin: is the writer still one of us, and is this exchange new?
--
-- KEYS  1 fence  2 writers  3 c  4 h  5 w  6 j  7 a  8 dead  9 b  10 topics  11 wr; then w:TOPIC of
--       each topic, t:TOPIC of each, l:TOPIC of each; in the order of priority o:TOPIC of each;
--       what a script has behind these says cmake/Scripts.cmake
-- ARGV  1 fence  2 lane  3 numbers in a row, as struct.unpack() reads them: that of the exchange,
--       the highest stamp that the process has seen, how many topics, and what the script has
--       besides; then the name of each topic
--
-- Answers {'F'}: fenced for good.  {'L', last}: the server has lost this writer, or what came after
-- the number `last`; another fence of a shared queue is that of one made anew.  {'P'}: a later
-- number was served already.
-- Behind this: `again`, a number that was served is sent once more and must get the same answer;
-- `stamp` and `now` (in us) of this exchange, or of the one that is repeated; `latest`, the highest
-- stamp there is; `capacity`, nil: none; `pack`, where the next of the numbers begins.
--
-- To write a number with string.format('%.0f') costs the server as much as a command, and half of
-- that where a command is given a number: so texts that are there are used, `clock_text`, scores as
-- they were read, and '0'.
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
local number, seen, topics, pack = struct.unpack('<ddB', ARGV[3])
local last = tonumber(string.match(writer[1], '^%d+'))
if number < last then
    return {'P'}
end
if number > last + 1 then
    return {'L', last}
end
local time = call('TIME')
local clock_text = time[1] .. string.sub('00000' .. time[2], -6)
local clock = tonumber(clock_text)
local highest, again, stamp, now = tonumber(writer[2] or 0), number == last, nil, clock
if again then
    stamp, now = string.match(writer[1], '^%d+ (%d+) (%d+)')
    stamp, now = tonumber(stamp), tonumber(now)
else
    stamp = math.max(highest + 1, seen, now)
end
local latest = math.max(stamp, highest)
local W, T, L = 11, 11 + topics, 11 + 2 * topics
local capacity, beats = tonumber(writer[3] or nil), false
local GRACE, SLEEP = 20000, 6e15 -- as in wake.lua
