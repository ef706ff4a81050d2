-- evict.lua - a writer is turned out: what it says from now on is answered with F.  What it holds
-- is due again when its leases end; that it was here stays in `p` for a day, so that it is not
-- forgotten before it has asked again.
--
-- KEYS  1 writers  2 p  3 w  4 wr, then w:TOPIC of each topic
-- ARGV  1 writer  2 what its channel begins with: it is rung, so that it hears of it at once
-- Answers what `p` says of it; nil: it is not one of us, and nothing was done.
local call = redis.call
local who = call('HGET', KEYS[2], ARGV[1])
if not who then
    return false
end
call('HSET', KEYS[1], ARGV[1] .. ':p', 'X', ARGV[1] .. ':w', 'X')
for i = 3, #KEYS do
    call('ZREM', KEYS[i], ARGV[1])
end
call('PUBLISH', ARGV[2] .. ARGV[1], '0')
return who
