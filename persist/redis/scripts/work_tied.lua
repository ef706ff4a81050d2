-- work_tied.lua - keys.lua and groups.lua are there.
local tied = true
