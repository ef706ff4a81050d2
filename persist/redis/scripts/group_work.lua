-- group_work.lua - what work.lua does of jobs that have groups: see groups.lua.

-- Jobs of these kinds give back their groups' passes.
local gives_back = {a = true, K = true, b = true, o = true, O = true}
local keeps = {n = true, r = true}

-- They wait again, without the pass: `score, id` of each begin at `from`; `good` as in words().
local function wait_anew(topic, groups, from, n, good)
    local nth = 0
    for i = 1, n do
        if not good or good[i] then
            nth = nth + 1
            local score, id = ARGV[from + 2 * i - 2], ARGV[from + 2 * i - 1]
            if groups[nth] then
                enter(topic, groups[nth], id, tonumber(score))
            else
                stand(topic, score, id)
            end
        end
    end
end

-- Of jobs that are to be claimed those in `behind` are kept back.  Answers the rest: ids, ends of
-- leases that are over, and those that were waiting.
local function without(topic, ids, over, behind)
    local t, l = KEYS[T + topic], KEYS[L + topic]
    local some, some_over, due = {}, {}, {}
    for i = 1, #ids do
        local id = ids[i]
        if behind[id] then
            keep_back(topic, behind[id], id, tonumber(call('ZSCORE', t, id) or over[i]))
            unstand(topic, {id})
            call('ZREM', l, id)
        else
            some[#some + 1] = id
            some_over[#some] = over[i]
            due[#due + 1] = not over[i] and id or nil
        end
    end
    return some, some_over, due
end
