#!/bin/sh
# The reader of docs/redis-layout.md, which knows nothing of the library, reads what that has
# written.
source=$(cd "$(dirname "$0")/../.." && pwd)
. "$(dirname "$0")/cli_lib"
serve
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
cd "$dir" || exit 1
put_jobs=$(dirname "$with_redis")/put_jobs
read_queue="python3 $source/examples/read_queue.py $REDIS_SOCKET"

# It lists the same jobs: id, time, priority, attempts, failures, bytes, topic.
"$put_jobs" "$url" q 100 || fail "no jobs are put"
run 0 restore --list --queue q "$url"
grep '^[0-9a-f]\{32\} ' out | awk '{ print $1, $2, $3, $4, $5, $6, $7 }' >wanted.list
[ "$(wc -l <wanted.list)" = 117 ] || fail "$(wc -l <wanted.list) jobs are listed, not 117"
$read_queue q >read || fail "it cannot read what the library has written"
awk '{ print $1, $2, $3, $4, $5, $6, $7 }' read | same wanted.list
has read " mail b'a letter' \$"
has read " - b'with a key' green\$"
has read " - b'with a growing retry' \$"
has read " mail b'with a ladder' \$"
has read " - b'with headers' \$"
has read " - b'of a group' \$"
has read " fax b'dead' red\$"

# Times that never come, and such as no date can be.
"$put_jobs" "$url" never 3 || fail "no jobs are put"
for time in 9223372036854775 1e18 inf; do
    redis eval 'redis.call("ZADD", KEYS[1], ARGV[1], redis.call("ZRANGE", KEYS[1], 0, 0)[1])' 1 \
        'due:{never}:t:' "$time" >/dev/null
    $read_queue never >read || fail "$time: it does not read on"
    has read ' never '
done

# One byte that is another one is seen, wherever it is: in each job another one is changed.
redis eval '
local members = redis.call("ZRANGE", KEYS[1] .. "t:", 0, -1)
for i, id in ipairs(members) do
    local record = redis.call("HGET", KEYS[1] .. "j", id)
    local at = i % #record + 1
    redis.call("HSET", KEYS[1] .. "j", id, string.sub(record, 1, at - 1) ..
        string.char((string.byte(record, at) + 1) % 256) .. string.sub(record, at + 1))
end
return #members' 1 'due:{q}:' >/dev/null
$read_queue q >read && fail "damaged records are not seen"
damaged=$(grep -c 'cannot be read$' read)
between 109 111 "$damaged" "damaged records" # a check of 16 bits may miss one
run 0 restore --list --queue q "$url"
grep '^[0-9a-f]\{32\} ' out | awk '{ print $1 }' >wanted.list
grep -v 'cannot be read$' read | awk '{ print $1 }' | same wanted.list
finish
