-- work_ends.lua - what becomes of the jobs that work.lua was told: see there.
local gone
if batches > 0 or has_revoked then
    -- These jobs of a topic are gone; `kept`: until when the key of each is kept.
    gone = function(l, ids, kept)
        if has_revoked then
            call('HDEL', x, unpack(ids))
        end
        call('ZREM', l, unpack(ids))
        call('HDEL', KEYS[6], unpack(ids))
        if has_entries then
            call('HDEL', KEYS[7], unpack(ids))
        end
        if has_long then
            call('HDEL', KEYS[9], unpack(ids))
        end
        if has_keys then
            end_keys(ids, kept)
        end
        if has_groups then
            call('HDEL', jg, unpack(ids))
        end
    end
end

if batches > 0 then
    -- The words of a batch's jobs, `width` of each; of those in `good` only, if that is given.
    local function words(first, width, n, good)
        if not good then
            return unpack(ARGV, first, first + width * n - 1)
        end
        local some = {}
        for i = 1, n do
            if good[i] then
                for j = first + (i - 1) * width, first + i * width - 1 do
                    some[#some + 1] = ARGV[j]
                end
            end
        end
        return unpack(some)
    end

    -- Which of the jobs are still ours: `runs` says how many of them in turn have the same end.
    -- Answers how many, and nil or a table of those that are.
    local function ours(l, n, runs)
        local ends = call('ZMSCORE', l, words(at, 1, n))
        local bad, count, i = nil, n, 0
        for run = 1, #runs do
            local lease_end = ARGV[at + n + run - 1]
            for _ = 1, runs[run] do
                i = i + 1
                if ends[i] ~= lease_end and
                    not (ends[i] and tonumber(ends[i]) == tonumber(lease_end)) then
                    bad, count = bad or {}, count - 1
                    bad[i] = true
                end
            end
        end
        if not bad then
            return n, nil
        end
        local good = {}
        for k = 1, n do
            good[k] = not bad[k]
        end
        return count, good
    end

    local function extended(l, n, good, behind)
        local args, until_ = {}, form('%.0f', now + ARGV[behind])
        for i = 1, n do
            if not good or good[i] then
                args[#args + 1] = until_
                args[#args + 1] = ARGV[at + i - 1]
            end
        end
        call('ZADD', l, 'XX', unpack(args))
    end

    -- A batch is done, whose other words begin at `behind`; `groups` are the jobs' own, if let_go()
    -- was asked for any.
    local function become(kind, topic, l, n, good, behind, groups)
        if kind == 'a' or kind == 'K' then
            return gone(l, {words(at, 1, n, good)}, kind == 'K' and {words(behind, 1, n, good)})
        end
        if kind == 'e' then
            return extended(l, n, good, behind)
        end
        if kind ~= 'r' then
            call('HSET', KEYS[7], words(behind, 2, n, good))
            has_entries, behind = true, behind + 2 * n
        end
        if kind == 't' then
            return
        end
        if kind == 'b' then
            call('ZADD', KEYS[8], words(behind, 2, n, good))
        elseif (kind == 'o' or kind == 'O') and groups then
            wait_anew(topic, groups, behind, n, good)
        else
            stand(topic, words(behind, 2, n, good))
        end
        call('ZREM', l, words(at, 1, n, good))
    end

    -- Of those of ours which were cancelled meanwhile; those that would wait again, or be
    -- dead, are gone then.  Answers nil or a table of which these are; which others are ours, and
    -- how many; and whether somebody of a group follows.  Who is done with one is told, too: he may
    -- have taken it for somebody who has left, and must not put it back.
    local drop_revoked
    if has_revoked then
        local goes = {n = true, o = true, O = true, b = true, r = true}
        drop_revoked = function(kind, topic, l, n, good, count, behind)
            local found, left = call('HMGET', x, words(at, 1, n)), {}
            local revoked, followed
            for i = 1, n do
                left[i] = (not good or good[i]) and not found[i]
                if found[i] and (not good or good[i]) then
                    revoked = revoked or {}
                    revoked[i] = true
                end
            end
            if not revoked or not goes[kind] then
                return revoked, good, count
            end
            local ids = {words(at, 1, n, revoked)}
            if has_groups then
                local _
                _, followed = let_go(topic, ids)
            end
            gone(l, ids, kind == 'O' and {words(behind + 4 * n, 1, n, revoked)})
            return revoked, left, count - #ids, followed
        end
    end

    for _ = 1, batches do
        local kind, topic, n, n_runs
        kind, topic, n, n_runs, pack = struct.unpack('<c1BHH', ARGV[3], pack)
        local behind, runs = at + n + n_runs, {}
        for run = 1, n_runs do
            runs[run], pack = struct.unpack('<H', ARGV[3], pack)
        end
        if not again then
            local l = KEYS[L + topic]
            local count, good = ours(l, n, runs)
            local all, revoked, of, followed = good, nil, nil, false
            if has_revoked and count > 0 then
                revoked, good, count, followed =
                    drop_revoked(kind, topic, l, n, good, count, behind)
            end
            if count > 0 then
                if has_groups and gives_back[kind] then
                    local follows
                    of, follows = let_go(topic, {words(at, 1, n, good)})
                    followed = followed or follows
                elseif has_groups and keeps[kind] then
                    keep_passes({words(at, 1, n, good)})
                end
                become(kind, topic, l, n, good, behind, of)
            elseif not revoked then
                call('ZREM', KEYS[5], me)
            end
            if count > 0 or revoked then
                local _, limit = setting(topic)
                touched[topic] = touched[topic] or limit or followed or
                    string.find('noOre', kind, 1, true) ~= nil
            end
            if all or revoked then
                stale = true
                for i = 1, n do
                    status[#status + 1] = all and not all[i] and 's' or
                        revoked and revoked[i] and 'x' or 'd'
                end
            else
                status[#status + 1] = string.rep('d', n)
            end
        end
        local width = (kind == 'a' or kind == 'e') and 0 or kind == 'K' and 1 or
            (kind == 'r' or kind == 't') and 2 or kind == 'O' and 5 or 4
        at = behind + width * n + (kind == 'e' and 1 or 0)
    end
end
