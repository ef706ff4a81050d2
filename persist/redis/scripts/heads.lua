-- heads.lua - the heads of topics of which no job is out: none of one that is paused.
--
-- KEYS  4 topics  5 h, then t:TOPIC of each
-- ARGV  the name of each, from 5 on
-- Answers how many have one.
local settings, n = call('HMGET', KEYS[4], unpack(ARGV, 5)), 0
for i = 5, #ARGV do
    local paused = string.match(settings[i - 4] or '', '^(%d+) %d+$')
    local first = paused ~= '1' and call('ZRANGE', KEYS[i + 1], 0, 0, 'WITHSCORES')[2]
    if first then
        call('ZADD', KEYS[5], form('%.0f', tonumber(first)), ARGV[i])
        n = n + 1
    end
end
return n
