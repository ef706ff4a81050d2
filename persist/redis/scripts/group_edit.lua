-- group_edit.lua - what edit.lua does of jobs that have groups: see groups.lua.
local has_groups = call('EXISTS', jg) == 1

local function group_of(id)
    return has_groups and call('HGET', jg, id) or nil
end

-- When it is due, if it is kept back.
local function kept_until(topic, id)
    return has_groups and call('ZSCORE', kept_in(topic), id) or nil
end

-- A job that nobody holds is about to go; `kept`: when it was due, if it is kept back.
local function leave_group(topic, group, id, kept)
    if kept then
        call('ZREM', kept_in(topic), id)
        call('ZREM', g, member(group, tonumber(kept), id))
    elseif topic ~= 0 then
        let_go(topic, {id})
        call('ZREM', kept_in(topic), id)
        set_exact_head(topic)
    end
    call('HDEL', jg, id)
end

-- It waits from now on until `score`, without the pass; one that was dead is nowhere.
local function regroup(topic, group, id, kept, score)
    if not kept then
        let_go(topic, {id})
    end
    local was = kept and member(group, tonumber(kept), id)
    if not enter(topic, group, id, score) then
        call('ZREM', KEYS[10 + 3 * topic], id)
    elseif kept then
        call('ZREM', kept_in(topic), id)
    end
    if was and (was ~= member(group, score, id) or not call('ZSCORE', kept_in(topic), id)) then
        call('ZREM', g, was)
    end
    set_exact_head(topic)
end
