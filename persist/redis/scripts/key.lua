-- key.lua - whose a unique key is, at one moment.  It writes nothing.
--
-- KEYS  1 k  2 kx  3 j
-- ARGV  the key
-- Answers the id of the job ('': it is nobody's), and 1 if that is gone and the key kept for it.
local call = redis.call
local id = call('HGET', KEYS[1], ARGV[1])
local kept = id and call('ZSCORE', KEYS[2], ARGV[1])
if kept then
    local time = call('TIME')
    if tonumber(kept) > time[1] * 1000000 + time[2] then
        return {id, 1}
    end
    return {'', 0}
end
return {id and call('HEXISTS', KEYS[3], id) == 1 and id or '', 0}
