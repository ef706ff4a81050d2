-- put.lua - new jobs (lane p).
--
-- ARGV  see put_needs.lua.  Which jobs may have room: 0, the first ones; or 1, there was no room
--       for an earlier one: then no other is put than those that are put whatever the capacity is;
--       or 2, others go in turns between these: the same, if there is a capacity; or 3, such ones
--       are in: all are put
-- Answers stamp, time, statuses (a letter for each record in turn, d done, e its key is another
-- job's, or f there is no room; '': all done), how many were rung.
--
-- A full server refuses the first write, and then nothing was done.
local refused, given, names, n_refused = {}, {}, {}, 0
local limited = shut ~= 3 and (capacity or shut == 1)
if keyed > 0 or limited then
    local found
    if keyed > 0 then
        for i = keys_from + 1, kept_from - 1, 3 do
            names[#names + 1] = ARGV[i]
        end
        found = call('HMGET', k, unpack(names))
    end

    -- Is the key of the one that has the n-th of them another job's?
    local function is_taken(n)
        local at = keys_from + 3 * n - 3
        local id, key, from = ARGV[at], names[n], ARGV[at + 2]
        local who, kept = given[key], false
        if not who and found[n] then
            who, kept = owner_of(key, found[n])
        end
        return who and who ~= id and (kept or who ~= from)
    end

    -- One after the other: who is refused has not got its key, and takes no room.  Of those that
    -- could have their keys the last ones have no room.
    local keeps, left, nth = {}, math.huge, 1
    local from, to, width = keys_from, kept_from - 1, 3
    if limited then
        left = shut == 0 and room_left() or 0
        from, to, width = records, records + 2 * jobs - 1, 2
        for i = kept_from, groups_from - 1 do
            keeps[ARGV[i]] = true
        end
    end
    for i = from, to, width do
        local id, why = ARGV[i], nil
        local has_key = nth <= keyed and ARGV[keys_from + 3 * nth - 3] == id
        if has_key and is_taken(nth) then
            why = 'e'
        elseif left <= 0 and not keeps[id] then
            why = 'f'
        else
            left = left - 1
            given[has_key and names[nth] or 0] = id
        end
        refused[id] = why
        n_refused = n_refused + (why and 1 or 0)
        nth = has_key and nth + 1 or nth
    end
end
local groups, fronts, entered
if grouped > 0 then
    groups, fronts, entered = read_groups(refused)
end

-- The words of `n` pairs from `at` on, without those of jobs that are refused; `id` says which of a
-- pair is the id.
local function words(at, n, id)
    if n_refused == 0 then
        return unpack(ARGV, at, at + 2 * n - 1)
    end
    local some = {}
    for i = at, at + 2 * n - 1, 2 do
        if not refused[ARGV[i + id]] then
            some[#some + 1] = ARGV[i]
            some[#some + 1] = ARGV[i + 1]
        end
    end
    return unpack(some)
end

local function set(hash, at, n)
    if n > 0 and words(at, n, 0) then
        call('HSET', hash, words(at, n, 0))
    end
end

local status = ''
if n_refused > 0 then
    status = {}
    for i = 1, jobs do
        status[i] = refused[ARGV[records + 2 * i - 2]] or 'd'
    end
    status = table.concat(status)
end
if n_refused == jobs then
    call('HDEL', KEYS[3], ARGV[2])
else
    local answer = redis.pcall('HSET', KEYS[6], words(records, jobs, 0))
    if type(answer) == 'table' then
        return answer
    end
end
set(KEYS[7], records + 2 * jobs, entries)
set(KEYS[9], records + 2 * (jobs + entries), longs)
if groups then
    call('HSET', jg, unpack(entered))
end

-- The first score of `n` jobs that are not refused; nil: all are.
local function first_score(at, n)
    local first
    for i = at, at + 2 * n - 1, 2 do
        if not refused[ARGV[i + 1]] and not (first and tonumber(first) <= tonumber(ARGV[i])) then
            first = ARGV[i]
        end
    end
    return first
end

local at = places
for topic = 1, topics do
    local new, n
    new, n, pack = struct.unpack('<BH', ARGV[3], pack)
    local first = n_refused == 0 and ARGV[at] or first_score(at, n)
    if new == 1 then -- also if all are refused: the writer does not say it again
        call('HSETNX', KEYS[10], ARGV[3 + topic], '0')
    end
    if groups then
        first = place_grouped(topic, at, n, groups, fronts, refused)
        first = first and form('%.0f', first)
    elseif first then
        stand(topic, words(at, n, 1))
    end
    -- A head that is no later is right, also of a topic that has a limit; a paused one has none.
    local head = first and call('ZSCORE', KEYS[4], ARGV[3 + topic])
    if first and not (head and tonumber(head) <= tonumber(first)) then
        lower_head(topic, first)
    end
    at = at + 2 * n
end
-- Behind the places: a job that is nowhere when half of this is torn must have no key.  And one in
-- `jk` whose key does not lead to it has none.
if keyed > 0 then
    local had, key_to_id, id_to_key = {}, {}, {}
    for i = 1, keyed do
        local id, key, n = ARGV[keys_from + 3 * i - 3], names[i], #key_to_id
        if not refused[id] then
            had[#had + 1] = key
            key_to_id[n + 1], key_to_id[n + 2] = key, id
            id_to_key[n + 1], id_to_key[n + 2] = id, key
        end
    end
    if #had > 0 then
        call('ZREM', kx, unpack(had))
        call('HSET', jk, unpack(id_to_key))
        call('HSET', k, unpack(key_to_id))
    end
    forget_some(keyed + 4)
end
if wakes then
    cover_all(1)
end
if capacity then
    if n_refused < jobs then
        came_for_room()
    end
    cover_room()
end
if n_refused > 0 then
    keep_status(status)
end
served()
return {stamp, now, status, rang}
