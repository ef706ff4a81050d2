-- keys.lua - unique keys: whose one is, and what becomes of it with its job.
--
-- KEYS  the last three of all: k  kx  jk
-- `k` says whose a key is, `jk` which key a job was put with, and `kx` until when a key is kept
-- whose job is gone.  A job that `jk` names, and `k` does not lead to, has lost its key to another.
-- What half of a torn script has left in `k`, of a job that is nowhere, is nobody's.
local k, kx, jk = KEYS[#KEYS - 2], KEYS[#KEYS - 1], KEYS[#KEYS]

-- Whose the key is, and true if it is kept for that one; nil: nobody's.  `id` is what `k` says.
local function owner_of(key, id)
    local kept = id and call('ZSCORE', kx, key)
    if kept then
        return tonumber(kept) > clock and id or nil, true
    end
    return id and call('HEXISTS', KEYS[6], id) == 1 and id or nil, false
end

-- Some keys that are not kept any more are forgotten: more than have come with this exchange.
local function forget_some(most)
    local over = call('ZRANGEBYSCORE', kx, '-inf', form('%.0f', clock), 'LIMIT', 0, most)
    if #over > 0 then
        call('ZREM', kx, unpack(over)) -- first: what is only in `k` is nobody's
        call('HDEL', k, unpack(over))
    end
end

-- These jobs are gone: their keys are kept, each until a score of `scores`; nil: they are free.
local function end_keys(ids, scores)
    local had, keys, of = call('HMGET', jk, unpack(ids)), {}, {}
    for i = 1, #ids do
        if had[i] then
            keys[#keys + 1] = had[i]
            of[#keys] = i
        end
    end
    if #keys == 0 then
        return
    end
    local owner, left = call('HMGET', k, unpack(keys)), {}
    for i = 1, #keys do
        if owner[i] == ids[of[i]] then
            left[#left + 1] = scores and scores[of[i]] or keys[i]
            left[#left + 1] = scores and keys[i] or nil
        end
    end
    if #left > 0 then
        call(scores and 'ZADD' or 'HDEL', scores and kx or k, unpack(left))
    end
    call('HDEL', jk, unpack(ids))
    forget_some(#keys + 4)
end
