-- share.lua - the end of making a queue that a process owned one that many share: who owned it last
-- is fenced, and whoever comes may join.
--
-- KEYS  3 meta
-- ARGV  5 nonce for the fence
-- Answers 1.
call('DEL', KEYS[2])
call('HDEL', KEYS[3], 'server')
call('HSET', KEYS[3], 'format', '2', 'least_reader', '2', 'order', 'deadline', 'mode', 'shared')
call('SET', KEYS[1], 's:' .. ARGV[5])
return 1
