-- by_time_keys.lua - how many keys of each topic a script has whose queue is in the order of time:
-- t:TOPIC  l:TOPIC  w:TOPIC  g:TOPIC.
local EACH = 4
