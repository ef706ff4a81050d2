-- fence.lua - how beat, leave and aside begin, which have no number: done twice they do no harm.
-- KEYS and ARGV as in head.lua.
local call, form = redis.call, string.format
local fence = call('GET', KEYS[1])
if fence ~= ARGV[1] then
    return {fence and string.sub(fence, 1, 2) ~= 's:' and 'F' or 'L'}
end
local lane = call('HGET', KEYS[2], ARGV[2])
if not lane then
    return {'L'}
end
if lane == 'X' then
    return {'F'}
end
local time = call('TIME')
local clock = time[1] * 1000000 + time[2]
local stamp = (call('HGET', KEYS[2], 'stamp') or 0) + 0 -- an error, if that is no number
local latest = stamp
local capacity, beats = tonumber(call('HGET', KEYS[2], 'capacity') or nil), true
local _, _, topics = struct.unpack('<ddB', ARGV[3])
local W, T, L = 11, 11 + topics, 11 + 2 * topics
local me = string.sub(ARGV[2], 1, -3)
local GRACE, SLEEP = 20000, 6e15 -- as in wake.lua
