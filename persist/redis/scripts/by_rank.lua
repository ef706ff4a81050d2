-- by_rank.lua - where the jobs of a topic wait, in a queue whose order is by priority.
--
-- KEYS  behind l:TOPIC of each: o:TOPIC of each
--
-- They stand in `t:TOPIC`, as in any queue, and that alone says what waits and until when.  Besides
-- each stands in `o:TOPIC`, all of whose scores are 0: the first byte of its id, which is 255 minus
-- the priority, its time in us (16 digits), and the rest of its id.  So of each priority those that
-- are due lie together, and come before those that are not; and none moves when it is due.
--
-- A job enters `o` before `t`, and leaves it after that.  So half of a torn script leaves one too
-- many there, which `t` does not have at that time: whoever meets it removes it.  One that `o` does
-- not name, since that key was deleted, comes when nothing else of its topic is due.
local function ranks_of(topic)
    return KEYS[L + topics + topic]
end

-- A job as `o` has it.
local function rank(score, id)
    return string.sub(id, 1, 1) .. form('%016.0f', score) .. string.sub(id, 2)
end

-- Jobs wait, that stood nowhere: score, id of each.
local function stand(topic, ...)
    local words = {...}
    for i = 1, #words, 2 do
        words[i], words[i + 1] = 0, rank(words[i], words[i + 1])
    end
    call('ZADD', ranks_of(topic), unpack(words))
    call('ZADD', KEYS[T + topic], ...)
end

-- The same of those of them that do not wait already, at whatever time.
local function stand_new(topic, ...)
    local words = {...}
    for i = 1, #words, 2 do
        if not call('ZSCORE', KEYS[T + topic], words[i + 1]) then
            stand(topic, words[i], words[i + 1])
        end
    end
end

-- One waits until `score`, perhaps no longer until another time.
local function stand_anew(topic, score, id)
    local was = call('ZSCORE', KEYS[T + topic], id)
    stand(topic, score, id)
    if was and tonumber(was) ~= tonumber(score) then
        call('ZREM', ranks_of(topic), rank(was, id))
    end
end

-- These wait no more.
local function unstand(topic, ids)
    local t, ranks = KEYS[T + topic], {}
    local scores = call('ZMSCORE', t, unpack(ids))
    for i = 1, #ids do
        if scores[i] then
            ranks[#ranks + 1] = rank(scores[i], ids[i])
        end
    end
    if #ranks > 0 then
        call('ZREM', t, unpack(ids))
        call('ZREM', ranks_of(topic), unpack(ranks))
    end
end
