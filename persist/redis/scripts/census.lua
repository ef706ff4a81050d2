-- census.lua - how much there is, at one moment.  It writes nothing.
--
-- KEYS  1 j  2 dead  3 p  4 h, and of each topic two: t:TOPIC  l:TOPIC
-- Answers time, records, dead, writers, head of all topics ('': none); of each topic: delayed,
-- ready (with those whose lease is over), leased, oldest of what is ready ('': none).
local call, form = redis.call, string.format
local time = call('TIME')
local now = form('%.0f', time[1] * 1000000 + time[2])
local answer = {tonumber(now), call('HLEN', KEYS[1]), call('ZCARD', KEYS[2]),
    call('HLEN', KEYS[3]), call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2] or ''}
for i = 5, #KEYS, 2 do
    local t, l = KEYS[i], KEYS[i + 1]
    local ready, over = call('ZCOUNT', t, '-inf', now), call('ZCOUNT', l, '-inf', now)
    local first = call('ZRANGEBYSCORE', t, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)[2]
    local oldest = call('ZRANGEBYSCORE', l, '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)[2]
    local earlier = first and oldest and tonumber(oldest) < tonumber(first)
    answer[#answer + 1] = call('ZCARD', t) - ready
    answer[#answer + 1] = ready + over
    answer[#answer + 1] = call('ZCARD', l) - over
    answer[#answer + 1] = (earlier and oldest) or first or oldest or ''
end
return answer
