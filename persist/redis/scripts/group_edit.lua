-- group_edit.lua - what edit.lua does of jobs that have groups: see groups.lua.
local has_groups = call('EXISTS', jg) == 1
local moved = {} -- topics in which somebody came to the front, or left it

local function group_of(id)
    return has_groups and call('HGET', jg, id) or nil
end

-- When it is due, if it is kept back.
local function kept_until(topic, id)
    return has_groups and call('ZSCORE', kept_in(topic), id) or nil
end

-- A job that nobody holds is about to go; `kept`: when it was due, if it is kept back.  One that is
-- dead is in no topic (0).  What `jg` says of it has to stay until it is nowhere; if that is lost,
-- it has no group any more.
local function leave_group(topic, group, id, kept)
    if kept then
        call('ZREM', kept_in(topic), id)
        if group then
            call('ZREM', g, member(group, tonumber(kept), id))
        end
    elseif topic ~= 0 then
        call('ZREM', kept_in(topic), id) -- what is left there
        let_go(topic, {id})
        moved[topic] = true
    end
end

-- It waits from now on until `score`, without the pass; one that was dead is nowhere.
local function regroup(topic, group, id, kept, score)
    if not kept then
        let_go(topic, {id})
    end
    local was, front = kept and member(group, tonumber(kept), id), enter(topic, group, id, score)
    if not kept and not front then
        unstand(topic, {id})
    elseif kept and front then
        call('ZREM', kept_in(topic), id)
    end
    if kept and (front or was ~= member(group, score, id)) then
        call('ZREM', g, was)
    end
    moved[topic] = moved[topic] or front or not kept
end

-- The heads of those topics.
local function set_moved_heads()
    for topic in pairs(moved) do
        set_exact_head(topic)
    end
end
