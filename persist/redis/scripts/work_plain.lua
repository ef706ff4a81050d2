-- work_plain.lua - what work.lua knows of keys and groups where no job that ends has any: nothing.
-- A claim has to know whether any job has a group, or it answers {'G'}, and nothing was done: the
-- script that knows them has to be asked.  The same holds, and {'R'} is the answer, of a claim that
-- would end jobs that were cancelled while they were held: they may have keys.
--
-- KEYS  the last: x  jg
local tied, x, jg = false, KEYS[#KEYS - 1], KEYS[#KEYS]
local jk = jg
