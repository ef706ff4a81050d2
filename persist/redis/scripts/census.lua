-- census.lua - how much there is, at one moment.  It writes nothing.
--
-- KEYS  1 j  2 dead  3 p  4 h, and of each topic three: t:TOPIC  l:TOPIC  g:TOPIC
-- Answers time, records, dead, writers, head of all topics ('': none); of each topic: delayed,
-- ready (with those whose lease is over, or that their group keeps back), leased, oldest of what
-- is ready ('': none).
local call, form = redis.call, string.format
local time = call('TIME')
local now = form('%.0f', time[1] * 1000000 + time[2])
local answer = {tonumber(now), call('HLEN', KEYS[1]), call('ZCARD', KEYS[2]),
    call('HLEN', KEYS[3]), call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2] or ''}
for i = 5, #KEYS, 3 do
    local due, all, oldest = {}, {}, ''
    for n = 1, 3 do
        local zset = KEYS[i + n - 1]
        local first = call('ZRANGEBYSCORE', zset, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)[2]
        due[n], all[n] = call('ZCOUNT', zset, '-inf', now), call('ZCARD', zset)
        if first and (oldest == '' or tonumber(first) < tonumber(oldest)) then
            oldest = first
        end
    end
    answer[#answer + 1] = all[1] - due[1] + all[3] - due[3]
    answer[#answer + 1] = due[1] + due[2] + due[3]
    answer[#answer + 1] = all[2] - due[2]
    answer[#answer + 1] = oldest
end
return answer
