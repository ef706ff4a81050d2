-- page.lua - the next jobs of a zset, by score and then by id, behind a place in which nobody need
-- stand any more.  It writes nothing.
--
-- KEYS  1 t:TOPIC or dead
-- ARGV  how many; the place: score ('': the beginning), id
-- Answers score, id of each.
local call = redis.call

-- Bytes, and not letters of some language.
local function is_behind(id, place)
    for i = 1, #place do
        local a, b = string.byte(id, i) or -1, string.byte(place, i)
        if a ~= b then
            return a > b
        end
    end
    return #id > #place
end

local from = 0
if ARGV[2] ~= '' then
    from = call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[2])
    local upto = call('ZCOUNT', KEYS[1], '-inf', ARGV[2])
    while from < upto do
        local middle = math.floor((from + upto) / 2)
        if is_behind(call('ZRANGE', KEYS[1], middle, middle)[1], ARGV[3]) then
            upto = middle
        else
            from = middle + 1
        end
    end
end
local found = call('ZRANGE', KEYS[1], from, from + ARGV[1] - 1, 'WITHSCORES')
local answer = {}
for i = 1, #found, 2 do
    answer[i] = string.format('%.0f', tonumber(found[i + 1]))
    answer[i + 1] = found[i]
end
return answer
