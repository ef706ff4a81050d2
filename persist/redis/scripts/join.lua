-- join.lua - one more writer of a shared queue, which is made if there is none.
--
-- KEYS  1 fence  2 writers  3 c  4 meta  5 w  6 p  7 owner  8 j
-- ARGV  1 nonce for a fence, 2 incarnation of a new queue, 3 format of this library, 4 how long the
--       owner's key stays (ms), 5 what `p` is to say of the writer, 6 the lowest writer it may be,
--       7 the capacity from now on ('': as it is, 0: none), 8 "priority": the order has to be that
--       ('': as it is, of a new queue "deadline"); then writers that were not seen for long, and
--       what `p` said of each
-- Answers {'J', writer, fence, stamp, time, capacity (0: none), 1 if the order is by priority}, or
-- nothing was done: {'O', who}: an owner lives; {'M'}: the queue is, or was, one process's at a
-- time; {'V', least}: a newer format; {'N', partitions}; {'D'}: its order is another, and somebody
-- shares it, or it has jobs: else its order becomes the one that is asked for.  Removing the
-- owner's key is the first write: a full server does not refuse what follows, so somebody can come
-- who works it off.
local call, form = redis.call, string.format
local meta =
    call('HMGET', KEYS[4], 'format', 'mode', 'least_reader', 'partitions', 'writer', 'order')
local owner = call('GET', KEYS[7])
if owner and string.sub(owner, 1, 8) ~= '2 shared' then
    return {'O', owner}
end
if meta[1] then
    if tonumber(meta[3] or 1) > tonumber(ARGV[3]) then
        return {'V', meta[3]}
    end
    if meta[2] ~= 'shared' then
        return {'M'}
    end
    if (meta[4] or '1') ~= '1' then
        return {'N', meta[4]}
    end
end
local asked = ARGV[8] ~= '' and ARGV[8]
local order = meta[1] and (meta[6] or 'deadline') or asked or 'deadline'
local orders = asked and order ~= asked
if orders then
    local others = call('HLEN', KEYS[6])
    for i = 9, #ARGV, 2 do
        others = others - (call('HGET', KEYS[6], ARGV[i]) == ARGV[i + 1] and 1 or 0)
    end
    if others > 0 or call('EXISTS', KEYS[8]) == 1 then
        return {'D'}
    end
    order = asked
end
local stamp = (call('HGET', KEYS[2], 'stamp') or 0) + 0 -- an error, if that is no number
local capacity = ARGV[7] ~= '' and ARGV[7] or call('HGET', KEYS[2], 'capacity') or 0
capacity = capacity + 0
local by_rank = order == 'priority'
local format = by_rank and '3' or '2'
local lives = math.max(call('PTTL', KEYS[7]), tonumber(ARGV[4])) -- others may beat less often
local time = call('TIME')
call('DEL', KEYS[7]) -- where no script may write behind that, nothing was done
local now = time[1] * 1000000 + time[2]
local writer = math.max(tonumber(meta[5] or 0) + 1, math.floor(now / 1000), tonumber(ARGV[6]))
local name = form('%.0f', writer)
local fence = call('GET', KEYS[1])
if orders or not fence or string.sub(fence, 1, 2) ~= 's:' then
    fence = 's:' .. ARGV[1]
    call('SET', KEYS[1], fence)
end
if not meta[1] then
    call('HSET', KEYS[4], 'format', format, 'least_reader', format, 'mode', 'shared',
        'partitions', '1', 'clock', 'realtime', 'order', order, 'incarnation', ARGV[2])
elseif orders then
    call('HSET', KEYS[4], 'format', format, 'least_reader', format, 'order', order)
end
for i = 9, #ARGV, 2 do
    if call('HGET', KEYS[6], ARGV[i]) == ARGV[i + 1] then
        call('HDEL', KEYS[2], ARGV[i] .. ':p', ARGV[i] .. ':w')
        call('HDEL', KEYS[3], ARGV[i] .. ':p', ARGV[i] .. ':w')
        call('HDEL', KEYS[6], ARGV[i])
        call('ZREM', KEYS[5], ARGV[i])
    end
end
call('SET', KEYS[7], '2 shared', 'PX', form('%.0f', lives))
call('HSET', KEYS[4], 'writer', name)
call('HSET', KEYS[6], name, form('%s %.0f', ARGV[5], now))
call('HSET', KEYS[2], name .. ':p', '0 0 0', name .. ':w', '0 0 0')
if ARGV[7] == '0' then
    call('HDEL', KEYS[2], 'capacity')
elseif ARGV[7] ~= '' then
    call('HSET', KEYS[2], 'capacity', ARGV[7])
end
return {
    'J', name, fence, stamp, now, capacity,
    by_rank and 1 or 0
}
