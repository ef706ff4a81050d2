-- work_claim.lua - the claim of work.lua.
if claims then
    local ID = 14 -- bytes

    -- The records of those jobs; '' where one is long, which would be copied here several times.
    local function short_records(ids)
        local long, short, places = call('HMGET', KEYS[9], unpack(ids)), {}, {}
        for i = 1, #ids do
            if long[i] then
                long[i] = ''
            else
                short[#short + 1], places[#places + 1] = ids[i], i
            end
        end
        local records = #short > 0 and call('HMGET', KEYS[6], unpack(short))
        for i = 1, #short do
            long[places[i]] = records[i]
        end
        return long
    end

    -- What has a name of another length is no job, whoever put it there, and goes.  Did any?  An
    -- empty name is taken for another one by priority, since it has no first byte.
    local function drop_odd(topic, l, ids)
        local odd = {''}
        for i = 1, #ids do
            if #ids[i] ~= ID then
                odd[#odd + 1] = ids[i]
            end
        end
        if odd[2] then
            if has_groups then
                let_go(topic, odd)
            end
            unstand(topic, odd)
            call('ZREM', l, unpack(odd))
        end
        return odd[2]
    end

    -- Appends to the answer what is known of the claimed jobs `ids` of a topic, in one text too.
    local function tell(topic, ids, text, over)
        local records = has_long and short_records(ids) or call('HMGET', KEYS[6], unpack(ids))
        local entries = has_entries and call('HMGET', KEYS[7], unpack(ids)) or ''
        lines[#lines + 1], count = {topic, text, over, records, entries}, count + #ids
    end

    -- Of leases that are over those of jobs that were cancelled meanwhile: these are gone.
    local drop_lapsed
    if has_revoked then
        drop_lapsed = function(topic, l, ids, over)
            local found, revoked = call('HMGET', x, unpack(ids)), {}
            for i = #ids, 1, -1 do
                if found[i] then
                    revoked[#revoked + 1] = table.remove(ids, i)
                    table.remove(over, i)
                end
            end
            if #revoked > 0 then
                if has_groups then
                    let_go(topic, revoked)
                end
                gone(l, revoked)
            end
        end
    end

    -- Leases that are over, if the first of them is: ids, and their ends as they stand there.  A
    -- job that half of a torn script has left in `t` too is waiting there.
    local function lapsed(topic, t, l, at_most, first)
        local ids, over, waits = {}, {}, {}
        if not first or first > clock then
            return ids, over
        end
        local found =
            call('ZRANGEBYSCORE', l, '-inf', clock_text, 'WITHSCORES', 'LIMIT', 0, at_most)
        for i = 1, #found, 2 do
            ids[#ids + 1], over[#over + 1] = found[i], found[i + 1]
        end
        local waiting = #ids > 0 and call('ZMSCORE', t, unpack(ids)) or {}
        for i = #ids, 1, -1 do
            if waiting[i] then
                waits[#waits + 1] = table.remove(ids, i)
                table.remove(over, i)
            end
        end
        if #waits > 0 then
            call('ZREM', l, unpack(waits))
        end
        if has_revoked and #ids > 0 then
            drop_lapsed(topic, l, ids, over)
        end
        return ids, over
    end

    -- A small zset is one string, which is searched from end to end for each member: of many that
    -- come at once that would be most of the work.  A member longer than 64 bytes makes it a large
    -- one, and so it stays without it.
    local MANY = 24

    -- Moves what is due from `t` to `l`, whose score is the end of the lease.
    local function claim(topic, at_most)
        local t, l = KEYS[T + topic], KEYS[L + topic]
        local paused, limit = setting(topic)
        if paused then
            return 0
        end
        local first = first_of(l)
        if limit or first == math.huge then
            call('ZREM', l, LONG)
            first = first_of(l)
        end
        local ids, over = lapsed(topic, t, l, math.max(at_most, LAPSED), first)
        local room, due = limit and limit - call('ZCARD', l) or math.huge, nil
        ids, over, due = choose(topic, ids, over, at_most, room, clock_text)
        local args, score = {}, whole(ends)
        if not first or first > clock then
            first_lease[topic] = #due > 0 and math.min(first or ends, ends) or first or math.huge
        end
        if #ids == 0 then
            return 0
        end
        if drop_odd(topic, l, ids) then
            first_lease[topic] = nil
            return 0 -- there may be more behind them: so the head is looked for
        end
        local behind = has_groups and give_passes(topic, ids)
        if behind then
            ids, over, due = without(topic, ids, over, behind)
            if #ids == 0 then
                first_lease[topic] = nil
                return 0
            end
        end
        local grows = #ids >= MANY and not limit and not first
        if grows then
            args[1], args[2] = '+inf', LONG
        end
        local at, passed = #args, next(over) and {} or ''
        for i = 1, #ids do
            args[at + 1], args[at + 2] = score, ids[i]
            at = at + 2
        end
        for i = 1, passed == '' and 0 or #ids do
            passed[i] = over[i] and form('%.0f', math.max(1, over[i])) or '' -- any may stand there
        end
        call('ZADD', l, unpack(args))
        if grows then
            call('ZREM', l, LONG)
        end
        if #due > 0 then
            unstand_chosen(topic, due)
        end
        local text = table.concat(ids)
        claimed[#claimed + 1] = {topic, text, passed}
        tell(topic, ids, text, passed)
        return #ids
    end

    -- The same answer once more: of what was claimed, that which is still ours.
    local function remember()
        local kept = string.match(writer[1], '^%d+ %d+ %d+ (.*)$') or call('HGET', KEYS[3], ARGV[2])
        kept = kept and cmsgpack.unpack(kept)
        if not kept or kept[1] ~= number then
            return
        end
        status, ends, claimed = {kept[2]}, kept[3], kept[4]
        stale = kept[2] ~= ''
        for _, group in ipairs(claimed) do
            local topic, text, over = unpack(group)
            for i = 1, #text / ID do
                local id = string.sub(text, ID * (i - 1) + 1, ID * i)
                local score = call('ZSCORE', KEYS[L + topic], id)
                if score and tonumber(score) == ends then
                    tell(topic, {id}, id, over == '' and '' or {over[i]})
                end
            end
        end
    end

    -- Somebody else waits, and has the first call on what is due.
    local function others_wait()
        for i = W, others and T or 0 do
            local w = i == W and KEYS[5] or KEYS[i]
            if call('ZCOUNT', w, form('(%.0f', clock - GRACE), '+inf') > 0 then
                return true
            end
        end
        return false
    end

    if again then
        remember()
        left = math.max(0, need - count)
    else
        wanted = (extra == 0 or others_wait()) and need or need + extra
        left = wanted
        for topic = 1, named do
            if left > 0 then
                local got = claim(topic, left)
                left = left - got
                looks[topic] = touched[topic] or got == 0
                touched[topic] = true
            end
        end
    end
end

-- Who begins to wait without a claim has to know what for.
if need == 0 and (wait == 'a' or wait == 't') then
    for topic = 1, named do
        touched[topic] = true
    end
end

-- The heads of topics as they are now, or lower bounds.  Where nobody waits, and all that was asked
-- for was got, those of topics in which jobs were claimed stay: a bound that is too low costs one
-- claim in vain, and to look for the head costs each claim.
for topic = 1, topics do
    local paused, limit
    if touched[topic] or again then
        paused, limit = setting(topic)
    end
    if looks[topic] == false and not (again or others or paused or limit) and left == 0 then
        more = 1
    elseif touched[topic] or again then
        local head
        if paused or limit then
            head = set_exact_head(topic) or math.huge
        else
            local waits, text = first_of(KEYS[T + topic])
            head = first_lease[topic] or first_of(KEYS[L + topic]) or math.huge
            if waits and waits <= head then
                head = waits
                call('ZADD', KEYS[4], text, ARGV[3 + topic])
            elseif head < math.huge then
                call('ZADD', KEYS[4], form('%.0f', head), ARGV[3 + topic])
            else
                call('ZREM', KEYS[4], ARGV[3 + topic])
            end
        end
        if head <= clock then
            more = 1
        end
        if left == 0 and others and head <= clock and not limit and
            call('ZCOUNT', KEYS[T + topic], '-inf', clock_text) > 2 * wanted then
            many = 2
        end
    end
end
local alarm = -1
local short = count < need or need == 0
local wakes = others or capacity or short and wait ~= 'n'
