-- put.lua - new jobs (lane p).
--
-- ARGV  how many records, and id, record of each; how many entries, and id, entry; how many long
--       records, and id, length; of each topic: 1 if it may be new, its first score, how many
--       jobs, and score, id of each
-- Answers stamp, time, statuses ('': all done), how many were rung (of a number that is repeated:
-- 1, since nobody knows whether that ring was heard).
--
-- A full server refuses the first write, and then nothing was done.
if again then
    return {stamp, now, '', 1}
end
local refused = redis.pcall('HSET', KEYS[6], unpack(ARGV, at + 1, at + 2 * ARGV[at]))
if type(refused) == 'table' then
    return refused
end
at = at + 1 + 2 * ARGV[at]
if ARGV[at] ~= '0' then
    call('HSET', KEYS[7], unpack(ARGV, at + 1, at + 2 * ARGV[at]))
end
at = at + 1 + 2 * ARGV[at]
if ARGV[at] ~= '0' then
    call('HSET', KEYS[9], unpack(ARGV, at + 1, at + 2 * ARGV[at]))
end
at = at + 1 + 2 * ARGV[at]
for topic = 1, topics do
    local name, jobs = ARGV[6 + topic], ARGV[at + 2]
    if ARGV[at] == '1' then
        call('HSETNX', KEYS[10], name, '0')
    end
    call('ZADD', KEYS[10 + 3 * topic], unpack(ARGV, at + 3, at + 2 + 2 * jobs))
    lower_head(topic, ARGV[at + 1])
    at = at + 3 + 2 * jobs
end
cover_all(1)
served()
return {stamp, now, '', rang}
