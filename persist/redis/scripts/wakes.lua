-- wakes.lua - a script that always looks whom to wake; put and work make the functions of wake.lua
-- only where somebody waits.
local wakes = true
