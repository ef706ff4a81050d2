-- status.lua - statuses that are not plain are kept, for who sends the number once more.
local function keep_status(status)
    call('HSET', KEYS[3], ARGV[2], cmsgpack.pack({number, status}))
end

local function kept_status()
    local kept = call('HGET', KEYS[3], ARGV[2])
    kept = kept and cmsgpack.unpack(kept)
    return kept and kept[1] == number and kept[2] or ''
end
