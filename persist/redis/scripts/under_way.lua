-- under_way.lua - the beginning of making a queue one that a process owns, or one that many share,
-- and of doing that anew.
--
-- KEYS  3 meta
-- ARGV  5 "owning" or "sharing"  6 "priority": that is to be its order when it is shared; '': it
--       stays what it was
-- Answers 1, or 2: that order is by priority.
if ARGV[5] == 'sharing' then
    call('TIME') -- where no script may write behind that, nobody could share the queue
end
if ARGV[6] ~= '' then
    call('HSET', KEYS[3], 'order', ARGV[6])
end
local by_rank = call('HGET', KEYS[3], 'order') == 'priority'
local format = by_rank and '3' or '2'
call('HSET', KEYS[3], 'mode', ARGV[5], 'format', format, 'least_reader', format)
return by_rank and 2 or 1
