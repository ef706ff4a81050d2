-- leave.lua - a writer goes, in order; what it held it has given back before.
--
-- KEYS  behind those of head.lua: p  owner
-- ARGV  after the topics' names: the second lane
-- Answers stamp, time, how many writers are left, how many were rung.
local lanes = {ARGV[2], ARGV[4 + topics]}
local p, owner = KEYS[#KEYS - 1], KEYS[#KEYS]
call('ZREM', KEYS[5], me)
for topic = 1, topics do
    call('ZREM', KEYS[W + topic], me)
end
call('HDEL', KEYS[2], unpack(lanes))
call('HDEL', KEYS[3], unpack(lanes))
call('HDEL', p, me)
cover_all(1)
call('ZREM', wr, me)
if capacity then
    cover_room()
end
local left = call('HLEN', p)
if left == 0 then
    call('DEL', owner)
end
return {stamp, clock, left, rang}
