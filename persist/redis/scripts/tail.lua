-- tail.lua - what the exchange leaves behind in `writers`: its number, stamp and time.
local function served()
    call('HSET', KEYS[2], ARGV[2], form('%s %.0f %.0f', ARGV[3], stamp, now), 'stamp',
        form('%.0f', stamp))
end
