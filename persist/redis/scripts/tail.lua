-- tail.lua - what the exchange leaves behind in `writers`: its number, stamp and time.
local function served()
    local mark = form('%.0f', stamp)
    local when = now == stamp and mark or form('%.0f', now)
    call('HSET', KEYS[2], ARGV[2], ARGV[3] .. ' ' .. mark .. ' ' .. when, 'stamp', mark)
end
