-- work_plain.lua - what work.lua knows of keys and groups where no job that ends has any: nothing.
-- A claim has to know whether any job has a group, or it answers {'G'}, and nothing was done: the
-- script that knows them has to be asked.
--
-- KEYS  the last: jg
local tied, jg = false, KEYS[#KEYS]
local jk = jg
