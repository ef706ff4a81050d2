-- room.lua - the capacity of a queue, and who waits for room in it.
--
-- `writers` has the capacity, if there is one.  Each job with a record that is not dead takes room,
-- so nothing is counted beside them.  `wr` has who waits for room, with scores as in `w`: -t, it
-- was rung at t; from SLEEP on, it sleeps until it is rung.  Who was rung less than GRACE ago will
-- come, and is left one room each; so as many are rung as there is room for, eight at a time.
--
-- At the end of every script each room has one who comes for it, and another process that looks
-- after GRACE whether it has come: the one that rang.  So one that is stopped or killed costs
-- GRACE.  And whoever was rung and comes while there is room is told of it, however late it is:
-- else nobody would get in where all need longer than GRACE to come.
--
-- A queue that has no capacity does not pay for making these functions; but a beat has them.
local wr = KEYS[11]
local room_left, cover_room, came_for_room, wait_for_room, forget_dead_waiters
if capacity or beats then
    local MOST, DAY = 8, 86400e6
    local me = string.sub(ARGV[2], 1, -3)

    -- How many more jobs may come; any number if there is no capacity any more.
    room_left = function()
        return capacity and capacity - call('HLEN', KEYS[6]) + call('ZCARD', KEYS[8]) or math.huge
    end

    -- Who was rung for room and will come.
    local function room_coming()
        return call('ZCOUNT', wr, form('%.0f', -clock), form('(%.0f', GRACE - clock))
    end

    -- Every script after which there may be room ends with this.  Of those that do not hear it any
    -- more some are struck off each time: no script goes on for long.
    cover_room = function()
        if call('EXISTS', wr) == 0 then
            return
        end
        local wanted, vain = math.min(room_left() - room_coming(), MOST), 0
        while wanted > 0 and vain < MOST and
            call('ZCOUNT', wr, form('%.0f', SLEEP), '+inf') > 0 do
            local who = ring(wr, clock)
            if who == me then
                -- If this process is killed now nobody looks whether it came: another one is rung
                -- besides, and it does not count as coming.
                call('ZADD', wr, form('%.0f', GRACE - clock), who)
            elseif who then
                wanted = wanted - 1
            else
                vain = vain + 1
            end
        end
    end

    -- Who was rung a day ago and did not come is gone: some of them.
    forget_dead_waiters = function()
        local gone = call('ZRANGEBYSCORE', wr, form('(%.0f', DAY - clock), '(0', 'LIMIT', 0, 16)
        if gone[1] then
            call('ZREM', wr, unpack(gone))
        end
    end

    -- We have got in, if we were rung.
    came_for_room = function()
        local score = tonumber(call('ZSCORE', wr, me) or nil)
        if score and score < 0 then
            call('ZREM', wr, me)
        end
    end

    -- We wait for room, or do not.  Answers how many may come now; 0: when we are rung.  Who was
    -- rung, and found others faster, stands in front of those who were not.
    wait_for_room = function(waits)
        local score = tonumber(call('ZSCORE', wr, me) or nil)
        if not waits then
            if score then
                call('ZREM', wr, me)
            end
            return 0
        end
        local rung, left = score and score < 0, room_left()
        if left < math.huge then
            local comes = rung and score >= -clock and score < GRACE - clock
            local free = left - room_coming() + (comes and 1 or 0)
            left = rung and math.min(left, math.max(free, 1)) or free
        else
            left = 1e6
        end
        if left > 0 then
            if score and not rung then
                call('ZREM', wr, me)
            end
            return left
        end
        if not score or rung then
            call('ZADD', wr, form('%.0f', rung and SLEEP or SLEEP + clock), me)
        end
        return 0
    end
end
