-- claim_by_rank.lua - which jobs come first, by priority (by_rank.lua): of those that are due the
-- highest priority, then the earliest.  A job whose lease is over is due since then.
--
-- A claim goes through the priorities in use from the highest on, at most 256, and through no more
-- of them than it takes to find all that are due: with one look at each, and one more where
-- something is due.  Of leases that are over it looks at the first LAPSED.
local LAPSED, TIMES = 256, 4 -- that often in one claim what `o` has too many of is removed

-- Do all that have these places in `o` wait at those times?  Places of others are removed, and what
-- is no place at all, or another text of the same time.
local function standing(topic, places)
    local ids, gone = {}, {}
    for i = 1, #places do
        ids[i] = string.sub(places[i], 1, 1) .. string.sub(places[i], 18)
    end
    local scores = call('ZMSCORE', KEYS[10 + 3 * topic], unpack(ids))
    for i = 1, #ids do
        if not scores[i] or rank(scores[i], ids[i]) ~= places[i] then
            gone[#gone + 1] = places[i]
        end
    end
    if #gone > 0 then
        call('ZREM', ranks_of(topic), unpack(gone))
    end
    return #gone == 0
end

-- Some that are due, and that `o` does not name.
local function add_unnamed(topic, found, most, now_text)
    local named = {}
    for i = 1, #found do
        named[found[i]] = true
    end
    local due = call('ZRANGEBYSCORE', KEYS[10 + 3 * topic], '-inf', now_text, 'WITHSCORES',
        'LIMIT', 0, most)
    for i = 1, #due, 2 do
        local place = rank(due[i + 1], due[i])
        if #found < most and not named[place] then
            found[#found + 1] = place
        end
    end
end

-- The first of those that are due and wait, at most so many, as their places in `o`.
local function first_ranks(topic, most, now_text)
    local o, found, from, times = ranks_of(topic), {}, 0, 0
    while #found < most and from < 256 and times < TIMES do
        local first = call('ZRANGE', o, '[' .. string.char(from), '+', 'BYLEX', 'LIMIT', 0, 1)[1]
        if not first then
            break
        end
        local some = {}
        from = string.byte(first)
        local at = string.match(string.sub(first, 2, 17), '^%-?%d+$') -- nil: it is no place
        if (tonumber(at) or 0) <= clock then
            local upto = '(' .. string.char(from) .. form('%016.0f', clock + 1)
            some = call('ZRANGE', o, '[' .. first, upto, 'BYLEX', 'LIMIT', 0, most - #found)
        end
        if #some == 0 or standing(topic, some) then
            for i = 1, #some do
                found[#found + 1] = some[i]
            end
            from = from + 1
        else
            times = times + 1 -- once more
        end
    end
    if #found < most then
        add_unnamed(topic, found, most, now_text)
    end
    return found
end

-- At most `at_most` of those whose leases are over, `ids` with their ends in `over`, and of those
-- that wait, of which `room` more may be held.  Answers ids, ends of leases, and those that were
-- waiting.
local function choose(topic, ids, over, at_most, room, now_text)
    local most = math.min(at_most, room)
    most = most > 0 and
        math.min(most, call('ZCOUNT', KEYS[10 + 3 * topic], '-inf', now_text)) or 0
    local places = most > 0 and first_ranks(topic, most, now_text) or {}
    local ends, chosen, chosen_over, due = {}, {}, {}, {places = {}}
    for i = 1, #ids do
        local place = rank(over[i], ids[i])
        places[#places + 1], ends[place] = place, over[i]
    end
    if #ids > 0 then
        table.sort(places, function(a, b) return is_behind(b, a) end)
    end
    for i = 1, math.min(at_most, #places) do
        local id = string.sub(places[i], 1, 1) .. string.sub(places[i], 18)
        chosen[i], chosen_over[i] = id, ends[places[i]]
        if not ends[places[i]] then
            due[#due + 1] = id
            due.places[#due] = places[i]
        end
    end
    return chosen, chosen_over, due
end

-- Those that were chosen, and were waiting, wait no more.
local function unstand_chosen(topic, due)
    if not due.places then
        return unstand(topic, due)
    end
    call('ZREM', KEYS[10 + 3 * topic], unpack(due))
    call('ZREM', ranks_of(topic), unpack(due.places))
end
