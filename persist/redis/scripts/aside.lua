-- aside.lua - a job that was claimed, and cannot be read, goes out of the first topic.
--
-- ARGV  after the topics' names: its id
-- Answers stamp, time, how many were rung.  The first write removes something: a full server does
-- not refuse what follows.
local id = ARGV[4 + topics]
call('HDEL', KEYS[9], id)
call('HDEL', x, id)
if call('EXISTS', jg) == 1 then
    let_go(1, {id})
end
unstand(1, {id})
call('ZREM', KEYS[L + 1], id)
call('HDEL', jg, id)
call('HDEL', KEYS[6], id)
call('HDEL', KEYS[7], id)
call('HDEL', KEYS[#KEYS], id) -- the key of a job that is nowhere is nobody's
set_exact_head(1)
cover_all(1)
if capacity then
    cover_room()
end
return {stamp, clock, rang}
