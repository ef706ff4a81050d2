-- claim_by_rank.lua - which jobs come first, by priority (by_rank.lua): of those that are due the
-- highest priority, then the earliest.  A job whose lease is over is due since then.
--
-- A claim goes through the priorities in use from the highest on, at most 256, and through no more
-- of them than it takes to find all that are due: with one command for each, and two more where
-- something is due, or one more if a single job is wanted.  It does so in each topic that it comes
-- to.  Of leases that are over it looks at the first LAPSED of a topic.
local LAPSED, TIMES = 64, 4 -- that often in one claim what `o` has too many of is removed

-- Do all that have these places in `o` wait at those times?  Places of others are removed, and what
-- is no place at all, or another text of the same time.
local function standing(topic, places)
    local ids, gone = {}, {}
    for i = 1, #places do
        ids[i] = string.sub(places[i], 1, 1) .. string.sub(places[i], 18)
    end
    local scores = call('ZMSCORE', KEYS[T + topic], unpack(ids))
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

-- Some that are due, and that `o` does not name, come behind all others.
local function add_unnamed(topic, found, most, now_text)
    local named = {}
    for i = 1, #found do
        named[found[i]] = true
    end
    local due = call('ZRANGEBYSCORE', KEYS[T + topic], '-inf', now_text, 'WITHSCORES',
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
            some = #found + 1 == most and {first} or
                call('ZRANGE', o, '[' .. first, upto, 'BYLEX', 'LIMIT', 0, most - #found)
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

-- The first of those whose leases are over, at most so many: places in `ids`.  These are in order
-- of their ends, so those of each priority are, too: nothing is compared.
local function first_lapsed(ids, most)
    local of, ranks, first = {}, {}, {}
    for i = 1, #ids do
        local byte = string.byte(ids[i]) or 0
        if not of[byte] then
            of[byte], ranks[#ranks + 1] = {}, byte
        end
        of[byte][#of[byte] + 1] = i
    end
    table.sort(ranks)
    for i = 1, #ranks do
        for k = 1, math.min(#of[ranks[i]], most - #first) do
            first[#first + 1] = of[ranks[i]][k]
        end
    end
    return first
end

-- At most `at_most` of those whose leases are over, `ids` with their ends in `over`, and of those
-- that wait, of which `room` more may be held.  Answers ids, ends of leases, and those that were
-- waiting.
local function choose(topic, ids, over, at_most, room, now_text)
    local most = math.min(at_most, room)
    most = most > 0 and
        math.min(most, call('ZCOUNT', KEYS[T + topic], '-inf', now_text)) or 0
    local places = most > 0 and first_ranks(topic, most, now_text) or {}
    local chosen, chosen_over, due = {}, {}, {places = {}}
    local first, next_over, next_place = first_lapsed(ids, at_most), 1, 1
    while #chosen < at_most and (first[next_over] or places[next_place]) do
        local i, place = first[next_over], places[next_place]
        if i and not (place and is_behind(rank(over[i], ids[i]), place)) then
            chosen[#chosen + 1], chosen_over[#chosen + 1] = ids[i], over[i]
            next_over = next_over + 1
        else
            local id = string.sub(place, 1, 1) .. string.sub(place, 18)
            chosen[#chosen + 1] = id
            due[#due + 1], due.places[#due + 1] = id, place
            next_place = next_place + 1
        end
    end
    return chosen, chosen_over, due
end

-- Those that were chosen, and were waiting, wait no more.
local function unstand_chosen(topic, due)
    if not due.places then
        return unstand(topic, due)
    end
    call('ZREM', KEYS[T + topic], unpack(due))
    call('ZREM', ranks_of(topic), unpack(due.places))
end
