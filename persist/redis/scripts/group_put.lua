-- group_put.lua - new jobs that have groups: see groups.lua.

-- The groups that the last words of ARGV tell, by id; whom `gh` names for each; and the words for
-- `jg`.  Nil: none of the jobs has one.
local function read_groups(refused)
    local entered, named, groups = {}, {}, {}
    for i = groups_from, groups_from + 2 * grouped - 1, 2 do
        local id, group = ARGV[i], ARGV[i + 1]
        if not refused[id] then
            entered[#entered + 1], entered[#entered + 2] = id, group
            named[#named + 1] = group
            groups[id] = group
        end
    end
    if #named == 0 then
        return nil
    end
    local found, fronts = call('HMGET', gh, unpack(named)), {}
    for i = 1, #named do
        fronts[named[i]] = found[i]
    end
    return groups, fronts, entered
end

-- Who stands in front of each group of the `n` jobs of a topic, whose scores and ids begin at
-- `from`.
local function old_fronts(topic, from, n, groups, named)
    local who, of, fronts = {}, {}, {}
    for i = from + 1, from + 2 * n, 2 do
        local group = groups[ARGV[i]]
        if group and named[group] and not fronts[group] then
            who[#who + 1], of[#of + 1] = named[group], group
            fronts[group] = true
        end
    end
    local found = fronts_of(topic, who)
    for i = 1, #of do
        fronts[of[i]] = found[i]
        if found[i] then
            found[i].old = true
        end
    end
    return fronts
end

-- Where each of them is to stand.  One that is in front already, waiting or held, stays there.
local function sort_out(topic, from, n, groups, named, refused)
    local first, kept, fronts = {}, {}, old_fronts(topic, from, n, groups, named)
    for i = from, from + 2 * n - 1, 2 do
        local id = ARGV[i + 1]
        local group = groups[id]
        if group then
            local score, f = tonumber(ARGV[i]), fronts[group]
            if not f then
                fronts[group] = {id = id, score = score}
            elseif f.id ~= id and (f.passed or not comes_before(score, id, f.score, f.id)) then
                kept[#kept + 1] = {group, id, score}
            elseif f.id ~= id then
                kept[#kept + 1] = {group, f.id, f.score, f.old}
                fronts[group] = {id = id, score = score}
            end
        elseif not refused[id] then
            first[#first + 1], first[#first + 2] = ARGV[i], id
        end
    end
    return first, kept, fronts
end

-- As many, with their groups: those in front to `t`, the others are kept back.  Answers the first
-- score of those in `t`; nil: there is none.
local function place_grouped(topic, from, n, groups, named, refused)
    local first, kept, fronts = sort_out(topic, from, n, groups, named, refused)
    local passes, by_group, by_time, gone, lowest = {}, {}, {}, {}, nil
    for group, f in pairs(fronts) do
        if not f.old then
            first[#first + 1] = form('%.0f', f.score)
            first[#first + 1] = f.id
            passes[#passes + 1] = group
            passes[#passes + 1] = f.id
        end
    end
    for i = 1, #kept do
        local group, id, score, old = unpack(kept[i], 1, 4)
        by_group[2 * i - 1], by_group[2 * i] = 0, member(group, score, id)
        by_time[2 * i - 1], by_time[2 * i] = form('%.0f', score), id
        gone[#gone + 1] = old and id or nil
    end
    for i = 1, #first, 2 do
        lowest = math.min(lowest or math.huge, tonumber(first[i]))
    end
    if #first > 0 then
        stand(topic, unpack(first))
    end
    if #passes > 0 then
        call('HSET', gh, unpack(passes))
    end
    if #kept > 0 then
        call('ZADD', g, unpack(by_group))
        call('ZADD', kept_in(topic), unpack(by_time))
    end
    if #gone > 0 then
        unstand(topic, gone)
    end
    return lowest
end
