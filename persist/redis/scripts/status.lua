-- status.lua - statuses that are not plain are kept, for who sends the number once more: that is
-- answered here.  How many were rung is 1 then, since nobody knows whether that ring was heard.
if again then
    local kept = call('HGET', KEYS[3], ARGV[2])
    kept = kept and cmsgpack.unpack(kept)
    return {stamp, now, kept and kept[1] == number and kept[2] or '', 1}
end

local function keep_status(status)
    call('HSET', KEYS[3], ARGV[2], cmsgpack.pack({number, status}))
end
