-- ours.lua - how the scripts of a conversion begin, which makes a shared queue one that a process
-- owns, or the other way: is the queue ours, and is this step one of what is under way?  Each may
-- be called again.
--
-- KEYS  1 fence  2 owner  3 meta
-- ARGV  1 fence  2 how long the owner's key stays (ms)  3 what it says
--       4 the mode in which this step is made; '': any
-- Answers {'F'}: it is not, and nothing was done.  {'M'}: the mode is another, likewise: the step
-- came late, or the server has fallen back.  The owner's key is the first that is written: a full
-- server does not refuse what follows.  If it is gone, it comes back: the fence says that nobody
-- else has taken the queue.
local call, form = redis.call, string.format
if call('GET', KEYS[1]) ~= ARGV[1] then
    return {'F'}
end
if ARGV[4] ~= '' and call('HGET', KEYS[3], 'mode') ~= ARGV[4] then
    return {'M'}
end
if call('PEXPIRE', KEYS[2], ARGV[2]) == 0 then
    call('SET', KEYS[2], ARGV[3], 'PX', ARGV[2])
end
