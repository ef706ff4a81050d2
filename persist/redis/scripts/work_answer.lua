-- work_answer.lua - who is woken or waits when work.lua has done its work, and its answer.
local SHORT = 200 -- such an answer stands with the number: a few jobs

if short and (wait == 'a' or wait == 't') then
    -- Writes down in `w` that we wait for `head`.  Answers until when: 0, until we are rung.
    local function note(w, head)
        local alarm
        if head < SLEEP then
            local set = alarms(w, head + GRACE)
            if not set[2] or tonumber(set[2]) > head then
                alarm = head
            elseif not set[4] then
                alarm = head + GRACE
            end
        end
        call('ZADD', w, form('%.0f', alarm or SLEEP + clock), me)
        return alarm or 0
    end

    local function note_all()
        local alarm = 0
        if wait == 'a' then
            local head = first_head() or SLEEP
            if head <= clock then
                return -1
            end
            return note(KEYS[5], head)
        end
        local heads = {}
        for topic = 1, named do
            heads[topic] = topic_head(topic) or SLEEP
            if heads[topic] <= clock then
                return -1
            end
        end
        for topic = 1, named do
            local set = note(KEYS[W + topic], heads[topic])
            if heads[topic] == SLEEP then -- it may be new: who asks who waits has to know of it
                call('HSETNX', KEYS[10], ARGV[3 + topic], '0')
            end
            if set > 0 and (alarm == 0 or set < alarm) then
                alarm = set
            end
        end
        return alarm
    end

    alarm, others = note_all(), true
    more = alarm == -1 and 1 or 0
elseif short and wait == 'h' and (first_head() or SLEEP) <= clock then
    more = 1
end
if others then
    cover_all(many)
end
if capacity then
    cover_room()
end
if again then
    status = table.concat(status)
else
    status = stale and table.concat(status) or ''
    local kept = (stale or count > 0) and cmsgpack.pack({number, status, ends, claimed})
    if kept and #kept > SHORT then
        call('HSET', KEYS[3], ARGV[2], kept)
    end
    served(kept and #kept <= SHORT and ' ' .. kept)
end
local answer = {stamp, now, status, ends, alarm, more, rang, count}
for i = 1, #lines do
    answer[8 + i] = lines[i]
end
if (wait == 'a' or wait == 'h') and (short or number % 8 == 0) then
    local heads = call('ZRANGE', KEYS[4], 0, 7, 'WITHSCORES')
    for i = 1, #heads do
        answer[#answer + 1] = heads[i]
    end
end
return answer
