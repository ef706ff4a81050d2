-- groups.lua - of the jobs of a group one is let through at a time.
--
-- KEYS  behind those of the topics: g:TOPIC of each; then jg  gh  g, before those of keys.lua
--
-- `jg` says which group a job has: the topic, a byte of zero, how long the group's name is (a
-- byte), the name.  Of each group one job stands where claims look for what is due: the one in
-- front, which `gh` names.  That is the first of those that wait, until it is claimed; from then
-- on it has the group's pass, which a `!` behind its id says, and stays in front until it ends or
-- gives the pass back.  All others are kept back: in `g:TOPIC` by their times, and in `g` by group,
-- time (16 digits) and id, where the next one is found.  What is kept back costs no claim a look.
--
-- A pass is not lost.  A group with somebody kept back has somebody in front, who is in `t` or
-- `l`; also when half of a script is torn, for who follows comes to the front before the one that
-- it follows goes, and who is kept back stays in `t` until it stands in both others.  What stands
-- in `t` or `l` and is not in front is kept back when a claim meets it, unless nobody is in front;
-- what `g` names, and `g:TOPIC` has not at that time, is nobody.
local jg, gh, g = KEYS[#KEYS - 5], KEYS[#KEYS - 4], KEYS[#KEYS - 3]
local ID = 14

local function kept_in(topic)
    return KEYS[12 + 3 * topics + topic]
end

local function member(group, score, id)
    return group .. form('%016.0f', score) .. id
end

-- Who stands in front of the group, when it is due (nil: it is held), and whether it has the pass.
-- One that is nowhere is nobody.
local function front_of(topic, group)
    local who = call('HGET', gh, group)
    local id = who and string.sub(who, 1, ID)
    local waits = id and call('ZSCORE', KEYS[10 + 3 * topic], id)
    if waits then
        return id, tonumber(waits), #who > ID
    end
    if id and call('ZSCORE', KEYS[11 + 3 * topic], id) then
        return id, nil, true
    end
end

local function comes_before(score, id, than, other)
    return score < than or score == than and is_behind(other, id)
end

local function keep_back(topic, group, id, score)
    call('ZADD', g, 0, member(group, score, id))
    call('ZADD', kept_in(topic), form('%.0f', score), id)
end

-- The next of the group comes to the front, in place of `id`.  Answers whether there is one.
local function follow(topic, group, id)
    while true do
        local found =
            call('ZRANGE', g, '[' .. group, '(' .. group .. ':', 'BYLEX', 'LIMIT', 0, 1)[1]
        if not found then
            call('HDEL', gh, group)
            return false
        end
        local score = tonumber(string.sub(found, #group + 1, #group + 16))
        local who = string.sub(found, #group + 17)
        local kept = who ~= id and call('ZSCORE', kept_in(topic), who)
        if kept and tonumber(kept) == score then
            call('ZADD', KEYS[10 + 3 * topic], 'NX', form('%.0f', score), who)
            call('HSET', gh, group, who)
            call('ZREM', kept_in(topic), who)
            call('ZREM', g, found)
            return true
        end
        call('ZREM', g, found)
    end
end

-- These jobs of a topic end, or give back their passes.  Answers the group of each (nil: none), and
-- whether somebody follows.  To be done before anything else becomes of them.  Where nobody is in
-- front, since `gh` was lost, somebody follows, too.
local function let_go(topic, ids)
    local groups, named, of = call('HMGET', jg, unpack(ids)), {}, {}
    for i = 1, #ids do
        if groups[i] then
            named[#named + 1] = groups[i]
            of[#named] = ids[i]
        end
    end
    if #named == 0 then
        return groups, false
    end
    local fronts, any, over = call('HMGET', gh, unpack(named)), call('EXISTS', g) == 1, {}
    local followed = false
    for i = 1, #named do
        if not fronts[i] or string.sub(fronts[i], 1, ID) == of[i] then
            if any then
                followed = follow(topic, named[i], of[i]) or followed
            else
                over[#over + 1] = named[i]
            end
        end
    end
    if #over > 0 then
        call('HDEL', gh, unpack(over))
    end
    return groups, followed
end

-- A job that is not in front waits from now on until `score`.  Answers true if it is in front, and
-- in `t`; else it is kept back.
local function enter(topic, group, id, score)
    local t = KEYS[10 + 3 * topic]
    local front, waits, passed = front_of(topic, group)
    if front and front ~= id and (passed or not comes_before(score, id, waits, front)) then
        keep_back(topic, group, id, score)
        return false
    end
    call('ZADD', t, form('%.0f', score), id)
    call('HSET', gh, group, id)
    if front and front ~= id then
        keep_back(topic, group, front, waits)
        call('ZREM', t, front)
    end
    return true
end

-- Jobs that are about to be claimed, of which those in front get their groups' passes.  Answers
-- nil, or, if something was torn, which of them are kept back instead.
local function give_passes(topic, ids)
    local groups, named, of = call('HMGET', jg, unpack(ids)), {}, {}
    for i = 1, #ids do
        if groups[i] then
            named[#named + 1] = groups[i]
            of[#named] = ids[i]
        end
    end
    if #named == 0 then
        return nil
    end
    local fronts, passes, mine, others = call('HMGET', gh, unpack(named)), {}, {}, nil
    local had = {}
    for i = 1, #named do
        local group, id, front = named[i], of[i], fronts[i]
        local own = front and string.sub(front, 1, ID) == id
        if had[group] or not own and front_of(topic, group) then
            others = others or {}
            others[id] = group
        else
            had[group] = true
            mine[#mine + 1] = id
            if not own or #front == ID then
                passes[#passes + 1] = group
                passes[#passes + 1] = id .. '!'
            end
        end
    end
    if #passes > 0 then
        call('HSET', gh, unpack(passes))
    end
    if #mine > 0 then
        call('ZREM', kept_in(topic), unpack(mine))
    end
    return others
end
