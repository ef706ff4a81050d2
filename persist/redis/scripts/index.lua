-- index.lua - what a shared queue knows of a page of jobs besides what an owner does.
--
-- KEYS  4 jk  5 b  6 jg  7 gh
-- ARGV  5 how many have a key  6 how many a group  7 how many of these may be in front, and come
--       first; then id, key of each; id, group of each (groups.lua); id, length of each long one
-- Answers how many these are.  Of a group the first that comes is in front; a claim keeps back the
-- others that it meets.
local at = 8
local function pairs_of(key, n)
    if n > 0 then
        call('HSET', key, unpack(ARGV, at, at + 2 * n - 1))
    end
end
pairs_of(KEYS[4], tonumber(ARGV[5]))
at = at + 2 * tonumber(ARGV[5])
pairs_of(KEYS[6], tonumber(ARGV[6]))
for i = at, at + 2 * tonumber(ARGV[7]) - 2, 2 do
    call('HSETNX', KEYS[7], ARGV[i + 1], ARGV[i])
end
at = at + 2 * tonumber(ARGV[6])
pairs_of(KEYS[5], (#ARGV + 1 - at) / 2)
return (#ARGV - 7) / 2
