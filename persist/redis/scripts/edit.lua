-- edit.lua - jobs that nobody holds are changed by those who know their id (lane p).
--
-- ARGV  how many changes; of each: kind, topic (0: any of those named), id, the score it is
--       believed to have ('': whichever), the entry it is believed to have ('': none; not looked at
--       without a score), new score, new entry
--         c  cancelled                m  moved to another time
--         k  dead, waits again        x  dead, is dropped
-- Answers stamp, time, statuses (d done, c it has changed, o somebody holds it, u unknown; '': all
-- done), how many were rung, as put.  Forgetting the lane's last answer is the first write: a full
-- server does not refuse what follows.
if again then
    local kept = call('HGET', KEYS[3], ARGV[2])
    kept = kept and cmsgpack.unpack(kept)
    return {stamp, now, kept and kept[1] == number and kept[2] or '', 1}
end
local status, plain = {}, true

local function drop(zset, id)
    call('ZREM', zset, id)
    call('HDEL', KEYS[6], id)
    call('HDEL', KEYS[7], id)
    call('HDEL', KEYS[9], id)
end

-- The zset in which the job stands, its score and topic; or a status.
local function find(kind, topic, id)
    if kind == 'k' or kind == 'x' then
        local score = call('ZSCORE', KEYS[8], id)
        if score then
            return KEYS[8], score, topic
        end
        return nil, 'u'
    end
    local out = 'u'
    for i = topic == 0 and 1 or topic, topic == 0 and topics or topic do
        local score = call('ZSCORE', KEYS[10 + 3 * i], id)
        if score then
            return KEYS[10 + 3 * i], score, i
        end
        if call('ZSCORE', KEYS[11 + 3 * i], id) then
            out = 'o'
        end
    end
    return nil, out
end

local function unchanged(score, id)
    if ARGV[at + 3] == '' then
        return true
    end
    return tonumber(score) == tonumber(ARGV[at + 3]) and
        (call('HGET', KEYS[7], id) or '') == ARGV[at + 4]
end

local function edit(kind, topic, id)
    local zset, score, where = find(kind, topic, id)
    if not zset then
        return score
    end
    if not unchanged(score, id) then
        return 'c'
    end
    if kind == 'c' or kind == 'x' then
        drop(zset, id)
        return 'd'
    end
    call('HSET', KEYS[7], id, ARGV[at + 6])
    call('ZADD', KEYS[10 + 3 * where], ARGV[at + 5], id)
    call('ZADD', KEYS[4], 'LT', ARGV[at + 5], ARGV[6 + where])
    if kind == 'k' then
        call('ZREM', KEYS[8], id)
    end
    return 'd'
end

local changes = tonumber(ARGV[at])
at = at + 1
call('HDEL', KEYS[3], ARGV[2])
for i = 1, changes do
    status[i] = edit(ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2])
    plain = plain and status[i] == 'd'
    at = at + 7
end
cover_all(1)
status = plain and '' or table.concat(status)
if not plain then
    call('HSET', KEYS[3], ARGV[2], cmsgpack.pack({number, status}))
end
served()
return {stamp, now, status, rang}
