-- by_time.lua - where the jobs of a topic wait, in a queue whose order is by time: in `t:TOPIC`,
-- and nowhere else.  by_rank.lua has the same functions for the other order.

-- Jobs wait, that stood nowhere: score, id of each.
local function stand(topic, ...)
    call('ZADD', KEYS[T + topic], ...)
end

-- The same of those of them that do not wait already, at whatever time.
local function stand_new(topic, ...)
    call('ZADD', KEYS[T + topic], 'NX', ...)
end

-- One waits until `score`, perhaps no longer until another time.
local stand_anew = stand

-- These wait no more.
local function unstand(topic, ids)
    call('ZREM', KEYS[T + topic], unpack(ids))
end
