-- put_needs.lua - what a put consists of, and whether it has to look whom to wake.
--
-- ARGV  3, behind the head's numbers: how many jobs, entries and long records, how many have a key,
--       how many are put whatever the capacity is, how many have a group, and which jobs may have
--       room (put.lua); then of each topic 1 if it may be new, and how many jobs
--       behind the topics' names: id, record of each job; id, entry of each entry; id, length of
--       each long record; of each topic score, id of each job, first one that is due first; id, key
--       of each key, and the job from which it takes that ('': none); id of each that is put
--       whatever the capacity is; id, group of each with a group
local jobs, entries, longs, keyed, keeping, grouped, shut
jobs, entries, longs, keyed, keeping, grouped, shut, pack =
    struct.unpack('<HHHHHHB', ARGV[3], pack)
local records = 4 + topics
local places = records + 2 * (jobs + entries + longs)
local keys_from = places + 2 * jobs
local kept_from = keys_from + 3 * keyed
local groups_from = kept_from + keeping
local wakes = capacity or call('EXISTS', KEYS[5], unpack(KEYS, W + 1, T)) > 0
