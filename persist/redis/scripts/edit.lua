-- edit.lua - jobs that nobody holds are changed by those who know their id (lane p).
--
-- ARGV  how many changes; of each: kind, topic (0: any of those named), id, the score it is
--       believed to have ('': whichever), attempts and failures it is believed to have, as an entry
--       has them ('': none; not looked at without a score, nor of the dead), new score, new entry
--         c  cancelled                m  moved to another time
--         k  dead, waits again        x  dead, is dropped: in place of the new score, more than how
--                                        many are to be dead ('': it does not matter)
--       for c and x the last word is a key, which has to be the job's ('': whichever); for c and l,
--       1 in place of the new score: if somebody holds it, it is not to come again, and is gone if
--       his lease is over (c); and with other content
--         u  waits still     v  stays dead, as it is     w  dead, waits again
--         l  cancelled           z  dead, is dropped: both only if it is as it was shown
--       of which four words more: the record as it is believed to be, the new one, its length if
--       it is long, else '', and a key as above.  There a new entry of '' is none, and l and z have
--       nothing new.  And of a topic
--         s  in place of score and entry 1 if it is to be paused, and how many of its jobs may be
--            held at a time; '' as it is
-- Answers stamp, time, statuses (d done, c it has changed, o somebody holds it, u unknown; '': all
-- done), how many were rung, as put.  Forgetting the lane's last answer is the first write: a full
-- server does not refuse what follows.
local at = 4 + topics
local status, plain = {}, true
local NONE = string.rep('\0', 8)
local has_keys = call('EXISTS', jk) == 1
local has_revoked = call('EXISTS', x) == 1
local wide = {u = true, v = true, w = true, l = true, z = true}

local function drop(zset, id, topic, score)
    local group = group_of(id)
    if group or zset == 'g' then
        leave_group(zset == KEYS[8] and 0 or topic, group, id, zset == 'g' and score)
    end
    if has_revoked then
        call('HDEL', x, id)
    end
    if zset == KEYS[T + topic] then
        unstand(topic, {id})
    elseif zset ~= 'g' then
        call('ZREM', zset, id)
    end
    if group then
        call('HDEL', jg, id)
    end
    call('HDEL', KEYS[6], id)
    call('HDEL', KEYS[7], id)
    call('HDEL', KEYS[9], id)
    if has_keys then
        end_keys({id})
    end
end

-- The zset in which the job stands ('g': it is kept back), its score and topic; or nil, a status,
-- and if that is that somebody holds it, its topic.
local function find(kind, topic, id)
    if string.find('kxvwz', kind) then
        local score = call('ZSCORE', KEYS[8], id)
        if score then
            return KEYS[8], score, topic
        end
        return nil, 'u'
    end
    local out, held_in = 'u', nil
    for i = topic == 0 and 1 or topic, topic == 0 and topics or topic do
        local score = call('ZSCORE', KEYS[T + i], id)
        if score then
            return KEYS[T + i], score, i
        end
        if call('ZSCORE', KEYS[L + i], id) then
            out, held_in = 'o', i
        else
            score = kept_until(i, id)
            if score then
                return 'g', score, i
            end
        end
    end
    return nil, out, held_in
end

-- The key that has to be the job's.
local function has_key(kind, id)
    local key = wide[kind] and ARGV[at + 10] or string.find('cx', kind) and ARGV[at + 6] or ''
    return key == '' or owner_of(key, call('HGET', k, key)) == id
end

local function unchanged(kind, score, id)
    if not has_key(kind, id) then
        return false
    end
    if ARGV[at + 3] == '' then
        return true
    end
    if tonumber(score) ~= tonumber(ARGV[at + 3]) then
        return false
    end
    if wide[kind] and call('HGET', KEYS[6], id) ~= ARGV[at + 7] then
        return false
    end
    if string.find('kxvwz', kind) then
        return true
    end
    local counts = string.sub(call('HGET', KEYS[7], id) or '', 21, 28)
    return (counts == NONE and '' or counts) == ARGV[at + 4]
end

-- Somebody holds it.
local function revoke(kind, topic, id)
    if not has_key(kind, id) then
        return 'c'
    end
    if kind == 'c' and tonumber(call('ZSCORE', KEYS[L + topic], id)) <= clock then
        drop(KEYS[L + topic], id, topic)
        moved[topic] = true
        return 'd'
    end
    call('HSET', x, id, 1)
    has_revoked = true
    return 'o'
end

-- It has other content, whose record names no key that it has lost to another job: whoever claims
-- it sees nothing of that, and ends it as one that never had any.
local function forget_lost_key(id)
    local key = call('HGET', jk, id)
    if key and call('HGET', k, key) ~= id then
        call('HDEL', jk, id)
    end
end

local function set(hash, id, value)
    if value == '' then
        call('HDEL', hash, id)
    else
        call('HSET', hash, id, value)
    end
end

-- What holds back a topic is another; what can be claimed now is to be.
local function set_topic(topic, paused, limit)
    local was_paused, was_limit = setting(topic)
    paused = paused ~= '' and paused or was_paused and '1' or '0'
    limit = limit ~= '' and limit or was_limit and form('%.0f', was_limit) or '0'
    settings[topic] = (paused ~= '0' or limit ~= '0') and paused .. ' ' .. limit or '0'
    call('HSET', KEYS[10], ARGV[3 + topic], settings[topic])
    set_exact_head(topic)
    return 'd'
end

local function edit(kind, topic, id)
    if kind == 's' then
        return set_topic(topic, ARGV[at + 5], ARGV[at + 6])
    end
    local zset, score, where = find(kind, topic, id)
    if not zset then
        local revokes = where and (kind == 'c' or kind == 'l') and ARGV[at + 5] == '1'
        return revokes and revoke(kind, where, id) or score
    end
    if not unchanged(kind, score, id) then
        return 'c'
    end
    if kind == 'x' and ARGV[at + 5] ~= '' and
        call('ZCARD', KEYS[8]) <= tonumber(ARGV[at + 5]) then
        return 'c'
    end
    if string.find('cxlz', kind) then
        drop(zset, id, where, score)
        return 'd'
    end
    if wide[kind] then
        call('HSET', KEYS[6], id, ARGV[at + 8])
        set(KEYS[9], id, ARGV[at + 9])
        if has_keys then
            forget_lost_key(id)
        end
    end
    if kind == 'v' then
        return 'd'
    end
    set(KEYS[7], id, ARGV[at + 6])
    local group = group_of(id)
    if not group then
        stand_anew(where, ARGV[at + 5], id)
        if zset == 'g' then
            leave_group(where, group, id, score)
        end
        lower_head(where, ARGV[at + 5])
    elseif kind ~= 'u' or tonumber(ARGV[at + 5]) ~= tonumber(score) then
        regroup(where, group, id, zset == 'g' and score, tonumber(ARGV[at + 5]))
    end
    if kind == 'k' or kind == 'w' then
        call('ZREM', KEYS[8], id)
    end
    return 'd'
end

local function reverse(list, from, to)
    while from < to do
        list[from], list[to] = list[to], list[from]
        from, to = from + 1, to - 1
    end
end

-- Where the words of each change begin, and the order in which they are done.  Of those to jobs
-- that wait the last comes first: so nobody of a group comes to the front who is to go, too.  But
-- of two to one job the first comes first.
local function in_order(n)
    local begins, order, first, seen = {}, {}, 1, {}
    for i = 1, n do
        local kind, id = ARGV[at], ARGV[at + 2]
        begins[i], order[i] = at, i
        local waits = string.find('cmul', kind)
        if not waits or seen[id] then
            reverse(order, first, i - 1)
            first, seen = waits and i or i + 1, {}
        end
        seen[id] = true
        at = at + (wide[kind] and 11 or 7)
    end
    reverse(order, first, n)
    return begins, order
end

local n = tonumber(ARGV[at])
at = at + 1
local begins, order = in_order(n)
call('HDEL', KEYS[3], ARGV[2])
for _, i in ipairs(order) do
    at = begins[i]
    status[i] = edit(ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2])
    plain = plain and status[i] == 'd'
end
set_moved_heads()
cover_all(1)
if capacity then
    cover_room()
end
status = plain and '' or table.concat(status)
if not plain then
    keep_status(status)
end
served()
return {stamp, now, status, rang}
