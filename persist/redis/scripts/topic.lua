-- topic.lua - what holds back the jobs of a topic, and the head that is left.
--
-- `topics` has for each topic 0, or `PAUSED LIMIT`: while that is 1 none of its jobs is claimed,
-- and at most so many are held at a time (0: any number).
local settings

-- Stands in `l` for a moment, to make it large (work.lua); a torn script leaves it there.  Before
-- the jobs in `l` are counted it is removed.
local LONG = '                                                                 '

-- Is it paused, and its limit: nil if it has none.
local function setting(topic)
    settings = settings or call('HMGET', KEYS[10], unpack(ARGV, 4, 3 + topics))
    local held = settings[topic]
    if not held or held == '0' then
        return false, nil
    end
    local paused, limit = string.match(held, '^(%d+) (%d+)$')
    limit = tonumber(limit)
    return paused == '1', limit and limit > 0 and limit or nil
end

-- The first score of a zset, and its text; nil if there is none.
local function first_of(zset)
    local text = call('ZRANGE', zset, '0', '0', 'WITHSCORES')[2]
    return tonumber(text), text
end

-- The head of a topic as it is now; nil: none of its jobs can be claimed until something is done.
local function set_exact_head(topic)
    local t, l = KEYS[T + topic], KEYS[L + topic]
    local paused, limit = setting(topic)
    call('ZREM', l, LONG)
    local first = not paused and first_of(l) or nil
    if not paused and not (limit and call('ZCARD', l) >= limit) then
        local waits = first_of(t)
        first = math.min(first or math.huge, waits or math.huge)
        first = first < math.huge and first or nil
    end
    if first then
        call('ZADD', KEYS[4], form('%.0f', first), ARGV[3 + topic])
    else
        call('ZREM', KEYS[4], ARGV[3 + topic])
    end
    return first
end

-- One more of its jobs waits, until `score`.
local function lower_head(topic, score)
    local paused, limit = setting(topic)
    if paused or limit then
        set_exact_head(topic)
    else
        call('ZADD', KEYS[4], 'LT', score, ARGV[3 + topic])
    end
end
