-- fold.lua - jobs that were out wait again: a page of a topic.
--
-- KEYS  4 l:TOPIC  5 t:TOPIC  6 dead  7 w:TOPIC
-- ARGV  id, and its own time (score; '': it has no record) of each, from 5 on
-- Answers how many these were.  One that half of a torn script has left in `t` or `dead` too is
-- there; one that is not in the first any more was folded already.  It stands in both for a moment
-- rather than in none.
for i = 5, #ARGV, 2 do
    local id, score = ARGV[i], ARGV[i + 1]
    if call('ZSCORE', KEYS[4], id) then
        if score ~= '' and not call('ZSCORE', KEYS[5], id) and not call('ZSCORE', KEYS[6], id) then
            call('ZADD', KEYS[5], score, id)
        end
        call('ZREM', KEYS[4], id)
    end
end
call('DEL', KEYS[7])
return (#ARGV - 4) / 2
