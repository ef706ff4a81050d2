-- tail.lua - what the exchange leaves behind in `writers`: its number, stamp and time, and of a
-- short answer what is more; it ends with a space then.
--
-- '%d' is cheap, and on a server of 32 bits good for that much only.
local function whole(n)
    if n < 2e9 then
        return form('%d', n)
    end
    return n < 2e15 and form('%d%06d', n / 1e6, n % 1e6) or form('%.0f', n)
end

local function served(more)
    local mark = stamp == clock and clock_text or whole(stamp)
    local text = whole(number) .. ' ' .. mark .. ' ' .. clock_text .. (more or '')
    call('HSET', KEYS[2], ARGV[2], text, 'stamp', mark)
end
