-- work.lua - what becomes of jobs that were claimed, then the next claim (lane w).
--
-- ARGV  how many batches; of each: kind, topic (1 is the first), how many jobs, their ids, the end
--       of lease with which each was claimed, and
--         a  the job is done, and its key is free
--         K  the same, and its key is kept      until (score) of each
--         n  it waits again        id, entry of each; score, id of each
--         o  the same, and of its group another may be the next
--         b  it is dead            the same; the score is the time of its death
--         r  it was not begun      score, id of each
--         t  an attempt begins     id, entry of each
--         e  a new end of lease    how long, in us
--       then the claim: how many are needed, how many more are welcome, how long a lease is (us),
--       and who waits if that many are not due: 'a' for any topic, 't' for those named; or nobody:
--       'h' and any topic would do, 'n' or ''.  Behind t and n stands how many of the topics the
--       claim is for, which come first
-- Answers stamp, time, statuses (a letter for each job in turn, d done or s stale; '': all done),
-- end of the new leases, alarm (-1 does not wait, 0 until it is rung), 1 if more is due, how many
-- were rung, how many were claimed; of each: topic, id, the end of the lease that another let pass
-- or '', record ('': long, to be read by itself; nil: missing), entry or ''; then, if any topic
-- would do, and the claim came back short or its number is one in eight: up to eight topics and
-- heads.
--
-- An end of lease is the token: it is compared first.  A job whose lease is over is due again like
-- any other.  The first write removes something: ourselves from `w`, or a job that is done and that
-- nobody can follow.  So a full server does not refuse what follows.
local me = ARGV[6]
local waiters = {KEYS[5]}
for topic = 1, topics do
    waiters[1 + topic] = KEYS[12 + 3 * topic]
end
local others, has_entries, has_long, has_keys = false, false, false, false
local has_groups = false
if call('EXISTS', KEYS[7], KEYS[9], jk, jg, unpack(waiters)) > 0 then
    has_entries, has_long = call('EXISTS', KEYS[7]) == 1, call('EXISTS', KEYS[9]) == 1
    has_keys, has_groups = call('EXISTS', jk) == 1, call('EXISTS', jg) == 1
    others = call('EXISTS', unpack(waiters)) > 0
    for i = 1, others and #waiters or 0 do
        call('ZREM', waiters[i], me)
    end
end
if not others and (again or has_groups or ARGV[at] == '0' or ARGV[at + 1] ~= 'a') then
    call('ZREM', KEYS[5], me)
end

-- The words of a batch's jobs, `width` of each; of those in `good` only, if that is given.
local function words(first, width, n, good)
    if not good then
        return unpack(ARGV, first, first + width * n - 1)
    end
    local some = {}
    for i = 1, n do
        if good[i] then
            for j = first + (i - 1) * width, first + i * width - 1 do
                some[#some + 1] = ARGV[j]
            end
        end
    end
    return unpack(some)
end

-- Which of the jobs are still ours.  Answers how many, and nil or a table of those that are.
local function ours(l, n)
    local ends = call('ZMSCORE', l, unpack(ARGV, at + 3, at + 2 + n))
    local good, count = {}, 0
    for i = 1, n do
        local lease = ARGV[at + 2 + n + i]
        good[i] = ends[i] and (ends[i] == lease or tonumber(ends[i]) == tonumber(lease))
        if good[i] then
            count = count + 1
        end
    end
    if count == n then
        return n, nil
    end
    return count, good
end

local function gone(l, n, good, scores)
    call('ZREM', l, words(at + 3, 1, n, good))
    call('HDEL', KEYS[6], words(at + 3, 1, n, good))
    if has_entries then
        call('HDEL', KEYS[7], words(at + 3, 1, n, good))
    end
    if has_long then
        call('HDEL', KEYS[9], words(at + 3, 1, n, good))
    end
    if has_keys then
        end_keys({words(at + 3, 1, n, good)}, scores)
    end
    if has_groups then
        call('HDEL', jg, words(at + 3, 1, n, good))
    end
end

local function done(t, l, n, good)
    gone(l, n, good, nil)
end

local function done_and_kept(t, l, n, good)
    gone(l, n, good, {words(at + 3 + 2 * n, 1, n, good)})
end

local function entries(t, l, n, good)
    call('HSET', KEYS[7], words(at + 3 + 2 * n, 2, n, good))
    has_entries = true
end

local function waits(t, l, n, good, topic)
    entries(t, l, n, good)
    stand(topic, words(at + 3 + 4 * n, 2, n, good))
    call('ZREM', l, words(at + 3, 1, n, good))
end

-- `topic` and `groups`, the jobs' own, are those that let_go() was asked for.
local function waits_anew(t, l, n, good, topic, groups)
    if not groups then
        return waits(t, l, n, good, topic)
    end
    entries(t, l, n, good)
    wait_anew(topic, groups, at + 3 + 4 * n, n, good)
    call('ZREM', l, words(at + 3, 1, n, good))
end

local function dead(t, l, n, good)
    entries(t, l, n, good)
    call('ZADD', KEYS[8], words(at + 3 + 4 * n, 2, n, good))
    call('ZREM', l, words(at + 3, 1, n, good))
end

local function released(t, l, n, good, topic)
    stand(topic, words(at + 3 + 2 * n, 2, n, good))
    call('ZREM', l, words(at + 3, 1, n, good))
end

local function extended(t, l, n, good)
    local args, lease = {}, form('%.0f', now + ARGV[at + 3 + 2 * n])
    for i = 1, n do
        if not good or good[i] then
            args[#args + 1] = lease
            args[#args + 1] = ARGV[at + 2 + i]
        end
    end
    call('ZADD', l, 'XX', unpack(args))
end

local kinds =
    {a = done, K = done_and_kept, n = waits, o = waits_anew, b = dead, r = released, t = entries,
    e = extended}
local length = {a = 2, K = 3, n = 6, o = 6, b = 6, r = 4, t = 4, e = 2}
local moves = {n = true, o = true, r = true, e = true}
local status, stale, touched = {}, false, {}
local batches = tonumber(ARGV[at])
at = at + 1
for _ = 1, batches do
    local kind, topic, n = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    if not again then
        local t, l = KEYS[10 + 3 * topic], KEYS[11 + 3 * topic]
        local count, good = ours(l, n)
        if count > 0 then
            local of, followed = nil, false
            if has_groups and gives_back[kind] then
                of, followed = let_go(topic, {words(at + 3, 1, n, good)})
            elseif has_groups and keeps[kind] then
                keep_passes({words(at + 3, 1, n, good)})
            end
            kinds[kind](t, l, n, good, topic, of)
            local _, limit = setting(topic)
            touched[topic] = touched[topic] or limit or followed or moves[kind]
        else
            call('ZREM', KEYS[5], me)
        end
        if good then
            stale = true
            for i = 1, n do
                status[#status + 1] = good[i] and 'd' or 's'
            end
        else
            status[#status + 1] = string.rep('d', n)
        end
    end
    at = at + 3 + length[kind] * n + (kind == 'e' and 1 or 0)
end
local need, extra, lease, wait =
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3]
local named = tonumber(string.sub(wait, 2)) or topics
wait = string.sub(wait, 1, 1)
local wanted, ends = need, now + lease
local claimed, lines, more, many = {}, {}, 0, 1
local now_text, first_lease = form('%.0f', clock), {}

-- Appends to the answer what is known of the claimed jobs `ids` of a topic; those that were not
-- claimed from a lease that ended have no `over`.
local function tell(topic, ids, over)
    local records = call('HMGET', KEYS[6], unpack(ids))
    local has = has_entries and call('HMGET', KEYS[7], unpack(ids)) or {}
    for i = 1, #ids do
        local line = #lines
        lines[line + 1] = topic
        lines[line + 2] = ids[i]
        lines[line + 3] = over[i] or ''
        lines[line + 4] = records[i]
        lines[line + 5] = has[i] or ''
    end
end

-- The same without what is long, which would be copied here several times.
local function tell_short(topic, ids, over)
    if not has_long then
        return tell(topic, ids, over)
    end
    local long = call('HMGET', KEYS[9], unpack(ids))
    for i = 1, #ids do
        if not long[i] then
            tell(topic, {ids[i]}, {over[i]})
        else
            local entry = call('HGET', KEYS[7], ids[i]) or ''
            for _, word in ipairs({topic, ids[i], over[i] or '', '', entry}) do
                lines[#lines + 1] = word
            end
        end
    end
end

-- Leases that are over, if the first of them is: ids, and their ends as they stand there.  A job
-- that half of a torn script has left in `t` too is waiting there.
local function lapsed(t, l, at_most, first)
    local ids, over, gone = {}, {}, {}
    if not first or first > clock then
        return ids, over
    end
    local found = call('ZRANGEBYSCORE', l, '-inf', now_text, 'WITHSCORES', 'LIMIT', 0, at_most)
    for i = 1, #found, 2 do
        ids[#ids + 1], over[#over + 1] = found[i], found[i + 1]
    end
    local waiting = #ids > 0 and call('ZMSCORE', t, unpack(ids)) or {}
    for i = #ids, 1, -1 do
        if waiting[i] then
            gone[#gone + 1] = table.remove(ids, i)
            table.remove(over, i)
        end
    end
    if #gone > 0 then
        call('ZREM', l, unpack(gone))
    end
    return ids, over
end

-- A small zset is one string, which is searched from end to end for each member: of many that come
-- at once that would be most of the work.  A member longer than 64 bytes makes it a large one, and
-- so it stays without it.
local MANY = 24

-- Moves what is due from `t` to `l`, whose score is the end of the lease.
local function claim(topic, at_most)
    local t, l = KEYS[10 + 3 * topic], KEYS[11 + 3 * topic]
    local paused, limit = setting(topic)
    if paused then
        return 0
    end
    local first = first_of(l)
    if limit or first == math.huge then
        call('ZREM', l, LONG)
        first = first_of(l)
    end
    local ids, over = lapsed(t, l, math.max(at_most, LAPSED), first)
    local room, due = limit and limit - call('ZCARD', l) or math.huge, nil
    ids, over, due = choose(topic, ids, over, at_most, room, now_text)
    local args, score = {}, form('%.0f', ends)
    if not first or first > clock then
        first_lease[topic] = #due > 0 and math.min(first or ends, ends) or first or math.huge
    end
    if #ids == 0 then
        return 0
    end
    local behind = has_groups and give_passes(topic, ids)
    if behind then
        ids, over, due = without(topic, ids, over, behind)
        if #ids == 0 then
            return 0
        end
    end
    local grows = #ids >= MANY and not limit and not first
    if grows then
        args[1], args[2] = '+inf', LONG
    end
    for i = 1, #ids do
        over[i] = over[i] and form('%.0f', over[i])
        args[#args + 1] = score
        args[#args + 1] = ids[i]
        claimed[#claimed + 1] = topic
        claimed[#claimed + 1] = ids[i]
        claimed[#claimed + 1] = over[i] or ''
    end
    call('ZADD', l, unpack(args))
    if grows then
        call('ZREM', l, LONG)
    end
    if #due > 0 then
        unstand_chosen(topic, due)
    end
    tell_short(topic, ids, over)
    return #ids
end

-- The same answer once more: of what was claimed, that which is still ours.
local function remember()
    local kept = call('HGET', KEYS[3], ARGV[2])
    kept = kept and cmsgpack.unpack(kept)
    if not kept or kept[1] ~= number then
        return
    end
    status, ends, claimed = {kept[2]}, kept[3], kept[4]
    stale = kept[2] ~= ''
    for i = 1, #claimed, 3 do
        local score = call('ZSCORE', KEYS[11 + 3 * claimed[i]], claimed[i + 1])
        if score and tonumber(score) == ends then
            tell_short(claimed[i], {claimed[i + 1]}, {claimed[i + 2]})
        end
    end
end

-- The lower bound of a topic's head as it is now.
local function set_head(topic)
    local paused, limit = setting(topic)
    if paused or limit then
        return set_exact_head(topic) or math.huge
    end
    local lease_over = first_lease[topic] or first_of(KEYS[11 + 3 * topic]) or math.huge
    local first = math.min(first_of(KEYS[10 + 3 * topic]) or math.huge, lease_over)
    if first == math.huge then
        call('ZREM', KEYS[4], ARGV[6 + topic])
    else
        call('ZADD', KEYS[4], form('%.0f', first), ARGV[6 + topic])
    end
    return first
end

-- Somebody else waits, and has the first call on what is due.
local function others_wait()
    for i = 1, others and #waiters or 0 do
        if call('ZCOUNT', waiters[i], recent(), '+inf') > 0 then
            return true
        end
    end
    return false
end

-- Writes down in `w` that we wait for `head`.  Answers until when: 0, until we are rung.
local function note(w, head)
    local alarm
    if head < SLEEP then
        local set = alarms(w, head + GRACE)
        if not set[2] or tonumber(set[2]) > head then
            alarm = head
        elseif not set[4] then
            alarm = head + GRACE
        end
    end
    call('ZADD', w, form('%.0f', alarm or SLEEP + clock), me)
    return alarm or 0
end

local function note_all()
    local alarm = 0
    if wait == 'a' then
        local head = first_head() or SLEEP
        if head <= clock then
            return -1
        end
        return note(KEYS[5], head)
    end
    for topic = 1, named do
        local set = note(KEYS[12 + 3 * topic], topic_head(topic) or SLEEP)
        if set > 0 and (alarm == 0 or set < alarm) then
            alarm = set
        end
    end
    return alarm
end

local left, alarm = 0, -1
if again then
    remember()
    left = math.max(0, need - #lines / 5)
elseif need + extra > 0 then
    wanted = (extra == 0 or others_wait()) and need or need + extra
    left = wanted
    for topic = 1, named do
        if left > 0 then
            left = left - claim(topic, left)
            touched[topic] = true
        end
    end
end
for topic = 1, topics do
    if touched[topic] or again then
        local head = set_head(topic)
        if head <= clock then
            more = 1
        end
        if left == 0 and others and head <= clock and not select(2, setting(topic)) and
            call('ZCOUNT', KEYS[10 + 3 * topic], '-inf', now_text) > 2 * wanted then
            many = 2
        end
    end
end
local count = #lines / 5
local short = count < need or need == 0
if short and (wait == 'a' or wait == 't') then
    alarm, others = note_all(), true
    more = alarm == -1 and 1 or 0
elseif short and wait == 'h' and (first_head() or SLEEP) <= clock then
    more = 1
end
if others then
    cover_all(many)
end
if capacity then
    cover_room()
end
if not again then
    status = stale and table.concat(status) or ''
    if stale or count > 0 then
        call('HSET', KEYS[3], ARGV[2], cmsgpack.pack({number, status, ends, claimed}))
    end
    served()
else
    status = table.concat(status)
end
local answer = {stamp, now, status, ends, alarm, more, rang, count}
for i = 1, #lines do
    answer[8 + i] = lines[i]
end
if (wait == 'a' or wait == 'h') and (short or number % 8 == 0) then
    local heads = call('ZRANGE', KEYS[4], 0, 7, 'WITHSCORES')
    for i = 1, #heads do
        answer[#answer + 1] = heads[i]
    end
end
return answer
