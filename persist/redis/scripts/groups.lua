-- groups.lua - of the jobs of a group one is let through at a time.
--
-- KEYS  behind those of head.lua: g:TOPIC of each; then jg  gh  g, before those of keys.lua
--
-- `jg` says which group a job has: the topic, a byte of zero, how long the group's name is (a
-- byte), the name.  Of each group one job stands where claims look for what is due: the one in
-- front, which `gh` names.  That is the first of those that wait, until it is claimed.  Then it has
-- the group's pass: while it is held, and, with a `!` behind its id, while it waits again without
-- having given that back.  All others are kept back: in `g:TOPIC` by their times, and in `g` by
-- group, time (16 digits) and id, where the next one is found.  So what is kept back costs no claim
-- a look.
--
-- A pass is not lost.  A group with somebody kept back has somebody in front, who is in `t` or
-- `l`; also when half of a script is torn, for who follows comes to the front before the one that
-- it follows goes, and who is kept back stays in `t` until it stands in both others.  What stands
-- in `t` or `l` and is not in front is kept back when a claim meets it, unless nobody is in front;
-- what `g` names, and `g:TOPIC` has not at that time, is nobody.
local jg, gh, g = KEYS[#KEYS - 5], KEYS[#KEYS - 4], KEYS[#KEYS - 3]
local ID = 14

local function kept_in(topic)
    return KEYS[#KEYS - 6 - topics + topic]
end

local function member(group, score, id)
    return group .. form('%016.0f', score) .. id
end

-- Who stands in front of the group (of which `gh` says `who`), when it is due (nil: it is held),
-- and whether it has the pass.  One that is nowhere is nobody.
local function front_of(topic, who)
    local id = who and string.sub(who, 1, ID)
    local waits = id and call('ZSCORE', KEYS[T + topic], id)
    if waits then
        return id, tonumber(waits), #who > ID
    end
    if id and call('ZSCORE', KEYS[L + topic], id) then
        return id, nil, true
    end
end

-- The same of many: of each whom `gh` names, its id, time and pass; nil: it is nowhere.
local function fronts_of(topic, who)
    local ids, found, absent, of = {}, {}, {}, {}
    for i = 1, #who do
        ids[i] = string.sub(who[i], 1, ID)
    end
    local waits = #ids > 0 and call('ZMSCORE', KEYS[T + topic], unpack(ids)) or {}
    for i = 1, #ids do
        if waits[i] then
            found[i] = {id = ids[i], score = tonumber(waits[i]), passed = #who[i] > ID}
        else
            absent[#absent + 1] = ids[i]
            of[#absent] = i
        end
    end
    local held = #absent > 0 and call('ZMSCORE', KEYS[L + topic], unpack(absent)) or {}
    for i = 1, #absent do
        found[of[i]] = held[i] and {id = absent[i], passed = true} or nil
    end
    return found
end

local function comes_before(score, id, than, other)
    return score < than or score == than and is_behind(other, id)
end

local function keep_back(topic, group, id, score)
    call('ZADD', g, 0, member(group, score, id))
    call('ZADD', kept_in(topic), form('%.0f', score), id)
end

-- The first of a group that `g` names.
local function next_of(group)
    return call('ZRANGE', g, '[' .. group, '(' .. group .. ':', 'BYLEX', 'LIMIT', 0, 1)[1]
end

-- The next of each group comes to the front, in place of `ids`.  Answers whether there is any.
local function follow(topic, groups, ids)
    local found, who, over = {}, {}, {}
    for i = 1, #groups do
        local first = next_of(groups[i])
        if first then
            found[#found + 1] = first
            who[#who + 1] = string.sub(first, #groups[i] + 17)
            groups[#found], ids[#found] = groups[i], ids[i]
        else
            over[#over + 1] = groups[i]
        end
    end
    if #over > 0 then
        call('HDEL', gh, unpack(over))
    end
    if #found == 0 then
        return false
    end
    local kept, places, fronts, again = call('ZMSCORE', kept_in(topic), unpack(who)), {}, {}, false
    for i = 1, #found do
        local group = groups[i]
        local score = string.sub(found[i], #group + 1, #group + 16)
        if who[i] ~= ids[i] and kept[i] and tonumber(kept[i]) == tonumber(score) then
            places[#places + 1] = form('%.0f', kept[i])
            places[#places + 1] = who[i]
            fronts[#fronts + 1] = group
            fronts[#fronts + 1] = who[i]
        else
            call('ZREM', g, found[i])
            if who[i] == ids[i] then
                call('ZREM', kept_in(topic), who[i])
            end
            again = follow(topic, {group}, {ids[i]}) or again
            found[i], who[i] = '', '' -- nobody's
        end
    end
    if #places > 0 then
        stand_new(topic, unpack(places))
        call('HSET', gh, unpack(fronts))
        call('ZREM', kept_in(topic), unpack(who))
        call('ZREM', g, unpack(found))
    end
    return again or #places > 0
end

-- Of these jobs those that have groups, and their groups.
local function named_of(ids)
    local groups, named, of = call('HMGET', jg, unpack(ids)), {}, {}
    for i = 1, #ids do
        if groups[i] then
            named[#named + 1] = groups[i]
            of[#named] = ids[i]
        end
    end
    return named, of, groups
end

-- These jobs of a topic end, or give back their passes.  Answers the group of each (nil: none), and
-- whether somebody follows.  To be done before anything else becomes of them.  Where nobody is in
-- front, since `gh` was lost, somebody follows, too.
local function let_go(topic, ids)
    local named, of, groups = named_of(ids)
    if #named == 0 then
        return groups, false
    end
    local fronts, led, by = call('HMGET', gh, unpack(named)), {}, {}
    for i = 1, #named do
        local front = fronts[i]
        if not front or front == of[i] or string.sub(front, 1, ID) == of[i] then
            led[#led + 1] = named[i]
            by[#led] = of[i]
        end
    end
    if #led == 0 then
        return groups, false
    end
    if #led > 1 and call('EXISTS', g) == 0 then
        call('HDEL', gh, unpack(led))
        return groups, false
    end
    return groups, follow(topic, led, by)
end

-- These jobs of a topic wait again with what they have.
local function keep_passes(ids)
    local named, of = named_of(ids)
    for i = #named, 1, -1 do
        named[2 * i - 1], named[2 * i] = named[i], of[i] .. '!'
    end
    if #named > 0 then
        call('HSET', gh, unpack(named))
    end
end

-- A job that is not in front waits from now on until `score`.  Answers true if it is in front, and
-- in `t`; else it is kept back.
local function enter(topic, group, id, score)
    local front, waits, passed = front_of(topic, call('HGET', gh, group))
    if front and front ~= id and (passed or not comes_before(score, id, waits, front)) then
        keep_back(topic, group, id, score)
        return false
    end
    stand_anew(topic, form('%.0f', score), id)
    call('HSET', gh, group, id)
    if front and front ~= id then
        keep_back(topic, group, front, waits)
        unstand(topic, {front})
    end
    return true
end

-- Jobs that are about to be claimed: those in front, which have their groups' passes then.  Answers
-- nil, or, if something was torn, which of them are kept back instead.
local function give_passes(topic, ids)
    local named, of = named_of(ids)
    if #named == 0 then
        return nil
    end
    local fronts, behind, had = call('HMGET', gh, unpack(named)), nil, {}
    for i = 1, #named do
        local group, id, front = named[i], of[i], fronts[i]
        local own = front == id or front and string.sub(front, 1, ID) == id
        if had[group] or not own and front_of(topic, front) then
            behind = behind or {}
            behind[id] = group
        else
            had[group] = true
            if not own then
                call('HSET', gh, group, id)
            end
        end
    end
    if call('EXISTS', g) == 1 then
        call('ZREM', kept_in(topic), unpack(of)) -- what is left there
    end
    return behind
end
