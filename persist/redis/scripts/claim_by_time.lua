-- claim_by_time.lua - which jobs come first, by time; claim_by_rank.lua is for the other order.

-- A claim has to know no more leases that are over than it wants jobs.
local LAPSED = 0

-- At most `at_most` of those whose leases are over, `ids` with their ends in `over`, and of those
-- that wait, of which `room` more may be held: leases first, then by time.  Answers ids, ends of
-- leases, and those that were waiting.
local function choose(topic, ids, over, at_most, room, now_text)
    local left = math.min(at_most - #ids, room)
    local due = left > 0 and call('ZRANGEBYSCORE', KEYS[T + topic], '-inf', now_text,
        'LIMIT', '0', left == 1 and '1' or left) or {}
    for i = 1, #due do
        ids[#ids + 1] = due[i]
    end
    return ids, over, due
end

-- Those that were chosen, and were waiting, wait no more.
local unstand_chosen = unstand
