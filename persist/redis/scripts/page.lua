-- page.lua - the next jobs of a zset, by score and then by id, behind a place in which nobody need
-- stand any more.  It writes nothing.
--
-- KEYS  1 t:TOPIC or dead; of a topic also 2 g:TOPIC
-- ARGV  how many; the place: score ('': the beginning), id
-- Answers score, id of each.
local call = redis.call

local function page_of(zset)
    local from = 0
    if ARGV[2] ~= '' then
        from = call('ZCOUNT', zset, '-inf', '(' .. ARGV[2])
        local upto = call('ZCOUNT', zset, '-inf', ARGV[2])
        while from < upto do
            local middle = math.floor((from + upto) / 2)
            if is_behind(call('ZRANGE', zset, middle, middle)[1], ARGV[3]) then
                upto = middle
            else
                from = middle + 1
            end
        end
    end
    return call('ZRANGE', zset, from, from + ARGV[1] - 1, 'WITHSCORES')
end

local found, kept = page_of(KEYS[1]), KEYS[2] and page_of(KEYS[2]) or {}
local answer, a, b = {}, 1, 1
while #answer < 2 * ARGV[1] and (found[a] or kept[b]) do
    local x, y = tonumber(found[a + 1]), tonumber(kept[b + 1])
    if not y or x and (x < y or x == y and is_behind(kept[b], found[a])) then
        answer[#answer + 1] = string.format('%.0f', x)
        answer[#answer + 1] = found[a]
        a = a + 2
    else
        answer[#answer + 1] = string.format('%.0f', y)
        answer[#answer + 1] = kept[b]
        b = b + 2
    end
end
return answer
