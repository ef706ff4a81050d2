-- wake.lua - who waits is written down in `w` (for any topic) and in `w:TOPIC`, and one is rung.
--
-- A message on the channel of a writer is `STAMP`: it is to come at once; or `STAMP ALARM NOW`:
-- it is to come then, and stands in `w` so already.  It need not, if a later exchange of its own
-- has been answered.  NOW is when that was said: its own idea of the time may be old.
--
-- A member's score says what it does: -t, it was rung at t; below SLEEP, it sleeps until then; from
-- SLEEP on, it sleeps until it is rung, and has since score - SLEEP.  What lies more than GRACE
-- back does not count: whoever should have come may be stopped or gone.
--
-- A head, the next time at which something is due, is covered when it is not due yet and two will
-- look by themselves: one at the head, one GRACE after it at the latest.
--
-- Where `wakes` is false nobody waits, and the functions are not made: that would be dearer than
-- all else that a small exchange does.
local rang, first_head, topic_head, alarms, ring, cover_all = 0
if wakes then
    local channel = string.sub(KEYS[1], 1, -6) .. 'r:' -- behind it the writer

    -- The alarms that count, up to `until_`: at most two, as member, score, member, score.
    alarms = function(w, until_)
        return call('ZRANGEBYSCORE', w, form('(%.0f', clock - GRACE), form('%.0f', until_),
            'WITHSCORES', 'LIMIT', 0, 2)
    end

    -- Rings one who sleeps longest, or has the earliest alarm after `after`; or tells it to come by
    -- itself at `alarm`.  Who does not hear it any more is struck off, and the next is rung:
    -- many of one machine may be killed together.  Answers who heard it; nil: nobody.
    ring = function(w, after, alarm)
        local text = form(alarm and '%.0f %.0f %.0f' or '%.0f', latest, alarm, clock)
        for _ = 1, 64 do
            local who =
                call('ZRANGEBYSCORE', w, form('%.0f', SLEEP), '+inf', 'LIMIT', 0, 1)[1] or
                call('ZRANGEBYSCORE', w, form('(%.0f', after), form('(%.0f', SLEEP),
                    'LIMIT', 0, 1)[1]
            if not who then
                return
            end
            if call('PUBLISH', channel .. who, text) > 0 then
                call('ZADD', w, form('%.0f', alarm or -clock), who)
                rang = rang + (alarm and 0 or 1)
                return who
            end
            call('ZREM', w, who)
        end
    end

    -- Sees to it that a head that is not due yet has one who comes for it, and one who comes after
    -- it.
    local function appoint(w, head)
        local set = alarms(w, head + GRACE)
        if not set[2] or tonumber(set[2]) > head then
            ring(w, head, head)
            set = alarms(w, head + GRACE)
        end
        if set[2] and not set[4] then
            ring(w, head + GRACE, head + GRACE)
        end
    end

    -- Sees to it that `head` is covered, or that `most` were rung less than GRACE ago.
    local function cover(w, head, most)
        if not head or head >= SLEEP then
            return
        end
        local under_way = call('ZCOUNT', w, form('%.0f', -clock), form('(%.0f', GRACE - clock))
        if under_way >= most then
            return
        end
        if head > clock then
            return appoint(w, head)
        end
        for _ = under_way + 1, most do
            ring(w, clock)
        end
    end

    -- The head of all topics, a lower bound: nil if nothing waits.
    first_head = function()
        return tonumber(call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2])
    end

    topic_head = function(topic)
        return tonumber(call('ZSCORE', KEYS[4], ARGV[3 + topic]) or nil)
    end

    -- Every script that writes ends with this: whom it covers.
    cover_all = function(most)
        if call('EXISTS', KEYS[5]) == 1 then
            cover(KEYS[5], first_head(), most)
        end
        for topic = 1, topics do
            local w = KEYS[W + topic]
            if call('EXISTS', w) == 1 then
                cover(w, topic_head(topic), most)
            end
        end
    end
end
