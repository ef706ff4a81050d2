-- under_way.lua - the beginning of making a queue one that a process owns, or one that many share,
-- and of doing that anew.
--
-- KEYS  3 meta
-- ARGV  5 "owning" or "sharing"
-- Answers 1.
call('HSET', KEYS[3], 'mode', ARGV[5], 'format', '2', 'least_reader', '2')
return 1
