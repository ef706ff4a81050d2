-- by_rank_keys.lua - how many keys of each topic a script has whose queue is in the order of
-- priority: behind g:TOPIC of each o:TOPIC of each, too (by_rank.lua).
local EACH = 5
