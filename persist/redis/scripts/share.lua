-- share.lua - the end of making a queue that a process owned one that many share: who owned it last
-- is fenced, and whoever comes may join.
--
-- KEYS  3 meta
-- ARGV  5 nonce for the fence
-- Answers 1.
call('DEL', KEYS[2])
call('HDEL', KEYS[3], 'server')
local by_rank = call('HGET', KEYS[3], 'order') == 'priority'
local format, order = by_rank and '3' or '2', by_rank and 'priority' or 'deadline'
call('HSET', KEYS[3], 'format', format, 'least_reader', format, 'order', order, 'mode', 'shared')
call('SET', KEYS[1], 's:' .. ARGV[5])
return 1
