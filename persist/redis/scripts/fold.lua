-- fold.lua - jobs that were out wait again: a page of a topic.
--
-- KEYS  4 l:TOPIC  5 t:TOPIC  6 dead  7 w:TOPIC  8 j  9 a  10 x  11 k  12 jk
-- ARGV  id, and its own time (score; '': it has no record) of each, from 5 on
-- Answers how many these were.  One that half of a torn script has left in `t` or `dead` too is
-- there; one that is not in the first any more was folded already.  It stands in both for a moment
-- rather than in none.  One that was cancelled while it was held (`x`) is gone, and its key is
-- free; it is named there until all are folded, so what half of this has left goes when it comes
-- again.
local function end_revoked(id)
    local key = call('HGET', KEYS[12], id)
    if key and call('HGET', KEYS[11], key) == id then
        call('HDEL', KEYS[11], key)
    end
    call('HDEL', KEYS[8], id)
    call('HDEL', KEYS[9], id)
end

for i = 5, #ARGV, 2 do
    local id, score = ARGV[i], ARGV[i + 1]
    if call('ZSCORE', KEYS[4], id) then
        if not call('ZSCORE', KEYS[5], id) and not call('ZSCORE', KEYS[6], id) then
            if call('HEXISTS', KEYS[10], id) == 1 then
                end_revoked(id)
            elseif score ~= '' then
                call('ZADD', KEYS[5], score, id)
            end
        end
        call('ZREM', KEYS[4], id)
    end
end
call('DEL', KEYS[7])
return (#ARGV - 4) / 2
