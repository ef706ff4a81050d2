-- leave.lua - a writer goes, in order; what it held it has given back before.
--
-- ARGV  after the topics' names: the second lane
-- Answers stamp, time, how many writers are left, how many were rung.
local lanes = {ARGV[2], ARGV[7 + topics]}
call('ZREM', KEYS[5], ARGV[6])
for topic = 1, topics do
    call('ZREM', KEYS[12 + 3 * topic], ARGV[6])
end
call('HDEL', KEYS[2], unpack(lanes))
call('HDEL', KEYS[3], unpack(lanes))
call('HDEL', KEYS[11], ARGV[6])
cover_all(1)
call('ZREM', wr, ARGV[6])
if capacity then
    cover_room()
end
local left = call('HLEN', KEYS[11])
if left == 0 then
    call('DEL', KEYS[12])
end
return {stamp, clock, left, rang}
