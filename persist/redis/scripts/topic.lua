-- topic.lua - what holds back the jobs of a topic, and the head that is left.
--
-- `topics` has for each topic 0, or `PAUSED LIMIT`: while that is 1 none of its jobs is claimed,
-- and at most so many are held at a time (0: any number).
local settings

-- Stands in `l` for a moment, to make it large (work.lua); a torn script leaves it there.  Before
-- the jobs in `l` are counted it is removed.
local LONG = string.rep(' ', 65)

-- Is it paused, and its limit: nil if it has none.
local function setting(topic)
    settings = settings or call('HMGET', KEYS[10], unpack(ARGV, 7, 6 + topics))
    local paused, limit = string.match(settings[topic] or '', '^(%d+) (%d+)$')
    limit = tonumber(limit)
    return paused == '1', limit and limit > 0 and limit or nil
end

-- The first score of a zset; nil if there is none.
local function first_of(zset)
    return tonumber(call('ZRANGE', zset, 0, 0, 'WITHSCORES')[2])
end

-- The head of a topic as it is now; nil: none of its jobs can be claimed until something is done.
local function set_exact_head(topic)
    local t, l = KEYS[10 + 3 * topic], KEYS[11 + 3 * topic]
    local paused, limit = setting(topic)
    call('ZREM', l, LONG)
    local first = not paused and first_of(l) or nil
    if not paused and not (limit and call('ZCARD', l) >= limit) then
        local waits = first_of(t)
        first = math.min(first or math.huge, waits or math.huge)
        first = first < math.huge and first or nil
    end
    if first then
        call('ZADD', KEYS[4], form('%.0f', first), ARGV[6 + topic])
    else
        call('ZREM', KEYS[4], ARGV[6 + topic])
    end
    return first
end

-- One more of its jobs waits, until `score`.
local function lower_head(topic, score)
    local paused, limit = setting(topic)
    if paused or limit then
        set_exact_head(topic)
    else
        call('ZADD', KEYS[4], 'LT', score, ARGV[6 + topic])
    end
end
