-- work.lua - what becomes of jobs that were claimed, then the next claim (lane w).
--
-- ARGV  3, behind the head's numbers: how many batches; of the claim how many are needed, how many
--       more are welcome, how long a lease is (us), who waits if that many are not due, 'a' for any
--       topic, 't' for those named, or nobody: 'h' and any topic would do, or 'n'; and how many of
--       the topics, the first ones, the claim is for; then of each batch kind, topic (1 is the
--       first), how many jobs, in how many runs they were claimed until the same time, and how
--       many are in each; behind the topics' names, of each batch: ids of its jobs, the end of
--       lease with which those of each run were claimed, and
--         a  the job is done, and its key is free
--         K  the same, and its key is kept      until (score) of each
--         n  it waits again        id, entry of each; score, id of each
--         o  the same, and of its group another may be the next
--         O  the same, and its key is kept if it is gone      after all else, until (score) of each
--         b  it is dead            the same; the score is the time of its death
--         r  it was not begun      score, id of each
--         t  an attempt begins     id, entry of each
--         e  a new end of lease    how long, in us
-- Answers stamp, time, statuses (a letter for each job in turn, d done, s stale, x done, but it was
-- cancelled while it was held: after e and t it is not to come again, else it is gone; '': all d),
-- end of the new leases, alarm (-1 does not wait, 0 until it is rung), 1 if more is due or may be,
-- how many were rung, how many were claimed; those of a topic, as often as it takes: {topic, their
-- ids in one text, of each the end of the lease that another let pass or '', of each its record
-- ('': long, to be read by itself; nil: missing), of each its entry or nil}, where '' stands for
-- ends if there are none of these jobs, for entries if the queue has none; then, if any topic would
-- do, and the claim came back short or its number is one in eight: up to eight topics and heads.
--
-- An end of lease is the token: it is compared first.  A job whose lease is over is due again like
-- any other.  The first write removes something: ourselves from `w`, or a job that is done and that
-- nobody can follow.  So a full server does not refuse what follows.
local batches, need, extra, lease, wait, named
batches, need, extra, lease, wait, named, pack = struct.unpack('<HHHdc1B', ARGV[3], pack)
local me = string.sub(ARGV[2], 1, -3)
local claims, at = again or need + extra > 0, 4 + topics
local others, has_entries, has_long, has_keys, has_groups = false, false, false, false, false
local has_revoked = false
if call('EXISTS', KEYS[7], KEYS[9], jk, jg, x, KEYS[5], unpack(KEYS, W + 1, T)) > 0 then
    has_entries, has_long = call('EXISTS', KEYS[7]) == 1, call('EXISTS', KEYS[9]) == 1
    has_keys, has_groups = tied and call('EXISTS', jk) == 1, call('EXISTS', jg) == 1
    if has_groups and not tied then
        if need + extra > 0 and not again then
            return {'G'}
        end
        has_groups = false -- ends of jobs without one; or what was done, which is only read
    end
    has_revoked = call('EXISTS', x) == 1
    for topic = 1, has_revoked and claims and not (tied or again) and named or 0 do
        if not setting(topic) and (first_of(KEYS[L + topic]) or math.huge) <= clock then
            return {'R'}
        end
    end
    others = call('EXISTS', KEYS[5], unpack(KEYS, W + 1, T)) > 0
    if others then
        call('ZREM', KEYS[5], me)
        for i = W + 1, T do
            call('ZREM', KEYS[i], me)
        end
    end
end
if not others and
    (again or has_groups or batches == 0 or string.sub(ARGV[3], pack, pack) ~= 'a') then
    call('ZREM', KEYS[5], me)
end

local status, stale, touched, looks = {}, false, {}, {}
local claimed, lines, count, left, more, many = {}, {}, 0, 0, 0, 1
local ends, wanted = now + lease, need
local first_lease = {}
