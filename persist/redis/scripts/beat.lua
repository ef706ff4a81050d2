-- beat.lua - a writer lives, and looks whether somebody should have come.
--
-- KEYS  behind those of head.lua: p  owner, then those of keys.lua
-- ARGV  after the topics' names: what `p` is to say of the writer, how long the owner's key stays
--       (ms), for how long the turn is to be nobody's before it is taken (us; 0: it is not wanted),
--       and what it is for: how long the dead are kept (ns), and how many (0: it does not matter);
--       1 if it waits for room
-- Answers stamp, time, the head of all topics ('': none), how many were rung; 1 if it is to be seen
-- whether they come: what is due was overdue by more than the grace, so that a ring must have been
-- lost, or they were rung for room; 1 if the turn was taken; for how many there is room (0: it will
-- be rung), the capacity (0: none); how many writers there are.
-- Some keys that are not kept any more are forgotten.
local at = 4 + topics
local p, owner = KEYS[#KEYS - 4], KEYS[#KEYS - 3]
local head, late, turn = first_head(), 0, 0
local every = tonumber(ARGV[at + 2] or 0)
local room = 0
-- Others may beat less often: three times what is due among so many (join.c).  It is the first
-- write: a full server does not refuse what follows.
local others = 6000 * math.min(call('HLEN', p), 1800)
local lives = math.max(call('PTTL', owner), tonumber(ARGV[at + 1]), others)
if call('PEXPIRE', owner, lives) == 0 then
    call('SET', owner, '2 shared', 'PX', lives)
end
call('HSET', p, me, form('%s %.0f', ARGV[at], clock))
forget_some(16)
cover_all(1)
if rang > 0 and head and head < clock - GRACE then
    late = 1
end
local rang_before = rang
if capacity or ARGV[at + 5] == '1' or call('EXISTS', wr) == 1 then
    forget_dead_waiters()
    room = wait_for_room(ARGV[at + 5] == '1')
    cover_room()
end
if rang > rang_before then
    late = 1
end
if every > 0 then
    local which = form('turn %s %s', ARGV[at + 3], ARGV[at + 4])
    local taken = tonumber(call('HGET', KEYS[2], which) or nil)
    if not taken or taken > clock or clock - taken >= every then
        call('HSET', KEYS[2], which, form('%.0f', clock))
        turn = 1
    end
end
local writers = call('HLEN', p)
return {
    stamp, clock, head and form('%.0f', head) or '', rang, late, turn, room, capacity or 0, writers
}
