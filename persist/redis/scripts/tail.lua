-- tail.lua - what the exchange leaves behind in `writers`: its number, stamp and time.
local function served()
    local mark = stamp == clock and clock_text or form('%.0f', stamp)
    call('HSET', KEYS[2], ARGV[2], form('%.0f %s %s', number, mark, clock_text), 'stamp', mark)
end
