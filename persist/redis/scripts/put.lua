-- put.lua - new jobs (lane p).
--
-- ARGV  how many have a key, and id, key of each, and the job from which it takes that ('': none);
--       0; or 1, there was no room for an earlier one: then no other is put than those that follow;
--       or 2, others go in turns between these: the same, if there is a capacity; or 3, such ones
--       are in: all are put; how many are put whatever the capacity is, and id of each; how many
--       have a group, and id, group of each; how many records, and id, record of each; how many
--       entries, and id, entry; how many long records, and id, length; of each topic: 1 if it may
--       be new, its first score, how many jobs, and score, id of each
-- Answers stamp, time, statuses (a letter for each record in turn, d done, e its key is another
-- job's, or f there is no room; '': all done), how many were rung (of a number that is repeated: 1,
-- since nobody knows whether that ring was heard).
--
-- A full server refuses the first write, and then nothing was done.
if again then
    return {stamp, now, kept_status(), 1}
end
local refused, given, rivals, n_refused = {}, {}, {}, 0
local keyed, keys = tonumber(ARGV[at]), {}
for i = at + 2, at + 3 * keyed, 3 do
    keys[#keys + 1] = ARGV[i]
end
local found = keyed > 0 and call('HMGET', k, unpack(keys)) or {}
for i = 1, keyed do
    local id, key, from = ARGV[at + 3 * i - 2], keys[i], ARGV[at + 3 * i]
    local who, kept = given[key], false
    if not who and found[i] then
        who, kept = owner_of(key, found[i])
    end
    if who and who ~= id and (kept or who ~= from) then
        refused[id] = 'e'
        n_refused = n_refused + 1
        rivals[id] = given[key]
    else
        given[key] = id
    end
end
local first_keyed = at
at = at + 1 + 3 * keyed
local shut, keeping = ARGV[at], tonumber(ARGV[at + 1])
at = at + 1
-- Of those that could have their keys the last ones have no room.
if shut ~= '3' and (capacity or shut == '1') then
    local keeps, left = {}, shut == '0' and room_left() or 0
    for i = at + 1, at + keeping do
        keeps[ARGV[i]] = true
    end
    local first = at + 1 + keeping -- the records stand behind the groups
    first = first + 1 + 2 * tonumber(ARGV[first])
    for i = first + 1, first + 2 * tonumber(ARGV[first]), 2 do
        local id = ARGV[i]
        if not refused[id] and (left > 0 or keeps[id]) then
            left = left - 1
        elseif not refused[id] then
            refused[id] = 'f'
            n_refused = n_refused + 1
        end
    end
    for id, before in pairs(rivals) do -- that one has not got the key after all
        refused[id] = refused[before] == 'f' and 'f' or refused[id]
    end
end
at = at + 1 + keeping
local had, key_to_id, id_to_key = {}, {}, {}
for i = 1, keyed do
    local id, key, n = ARGV[first_keyed + 3 * i - 2], keys[i], #key_to_id
    if not refused[id] then
        had[#had + 1] = key
        key_to_id[n + 1], key_to_id[n + 2] = key, id
        id_to_key[n + 1], id_to_key[n + 2] = id, key
    end
end
local groups, fronts, entered = read_groups(refused)

-- The words of `n` pairs behind `at`, without those of jobs that are refused; `id` says which of a
-- pair is the id.
local function words(n, id)
    if n_refused == 0 then
        return unpack(ARGV, at + 1, at + 2 * n)
    end
    local some = {}
    for i = at + 1, at + 2 * n, 2 do
        if not refused[ARGV[i + id]] then
            some[#some + 1] = ARGV[i]
            some[#some + 1] = ARGV[i + 1]
        end
    end
    return unpack(some)
end

local function set(hash)
    local n = tonumber(ARGV[at])
    if n > 0 and (n_refused == 0 or words(n, 0)) then
        call('HSET', hash, words(n, 0))
    end
    at = at + 1 + 2 * n
end

local n, status = tonumber(ARGV[at]), ''
if n_refused > 0 then
    status = {}
    for i = 1, n do
        status[i] = refused[ARGV[at + 2 * i - 1]] or 'd'
    end
    status = table.concat(status)
end
if n_refused == n then
    call('HDEL', KEYS[3], ARGV[2])
else
    local answer = redis.pcall('HSET', KEYS[6], words(n, 0))
    if type(answer) == 'table' then
        return answer
    end
end
at = at + 1 + 2 * n
set(KEYS[7])
set(KEYS[9])
if groups then
    call('HSET', jg, unpack(entered))
end

-- The first score of those that are not refused; nil: all are.
local function first_score(jobs)
    local first
    for i = at + 3, at + 2 + 2 * jobs, 2 do
        if not refused[ARGV[i + 1]] and not (first and tonumber(first) <= tonumber(ARGV[i])) then
            first = ARGV[i]
        end
    end
    return first
end

for topic = 1, topics do
    local name, jobs = ARGV[6 + topic], tonumber(ARGV[at + 2])
    local first = n_refused == 0 and ARGV[at + 1] or first_score(jobs)
    if ARGV[at] == '1' then -- also if all are refused: the writer does not say it again
        call('HSETNX', KEYS[10], name, '0')
    end
    if groups then
        first = place_grouped(topic, at + 3, jobs, groups, fronts, refused)
        if first then
            lower_head(topic, form('%.0f', first))
        end
    elseif first then
        at = at + 2
        stand(topic, words(jobs, 1))
        at = at - 2
        lower_head(topic, first)
    end
    at = at + 3 + 2 * jobs
end
-- Behind the places: a job that is nowhere when half of this is torn must have no key.  And one in
-- `jk` whose key does not lead to it has none.
if #had > 0 then
    call('ZREM', kx, unpack(had))
    call('HSET', jk, unpack(id_to_key))
    call('HSET', k, unpack(key_to_id))
end
if keyed > 0 then
    forget_some(keyed + 4)
end
cover_all(1)
if capacity then
    if n_refused < n then
        came_for_room()
    end
    cover_room()
end
if n_refused > 0 then
    keep_status(status)
end
served()
return {stamp, now, status, rang}
