#!/bin/sh
# verify, repair, restore, export and import of a queue that many processes share.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

mode()
{
    redis HGET 'due:{q}:meta' mode
}

# wrong TEXT: verify finds one thing wrong, and says that; --repair sets it right.
wrong()
{
    run 1 verify --queue q "$url"
    has out "^wrong .*$1"
    run 0 verify --repair --queue q "$url"
    has out 'wrong, .* repaired$'
    [ "$(mode)" = shared ] || fail "it is not shared after a repair"
    run 0 verify --queue q "$url"
    has out '^whole$'
}

printf '0s one\ntopic=mail 0s two\nkey=a 1h keyed\n2h much later\n' >in.txt
run 0 push --shared --queue q "$url" <in.txt
cp out ids

# While one of them has jobs, and lives.
until_go="while [ -d '$dir' ] && [ ! -e '$dir/go' ]; do sleep 0.02; done" # or the test is over
timeout 60 "$duectl" work --shared --workers 2 --queue q --exec "cat; $until_go" "$url" >worked \
    2>said &
pid=$!
pids=$pid
tries=0
until [ "$(redis ZCARD 'due:{q}:l:')$(redis ZCARD 'due:{q}:l:mail')" = 11 ] || [ $tries = 500 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
run 0 verify --queue q "$url"
has out '^owner   none, it is shared: processes have it open; 1 '
has out '^jobs    4 members of 2 topics, 0 dead, 4 records'
has out '^out     2 on a lease$'
has out '^whole$'
run 0 restore --queue q "$url"
has out '^jobs    4, 0 of them dead'
has out '^mail .* 1 .*1 on a lease$'
has_not out '^hidden'
run 0 restore --list --queue q "$url"
has out ' two$'
run 3 verify --repair --queue q "$url"
has err "shared by others, such as process [0-9]* on host"
run 3 export --queue q "$url"
has err "shared by others, such as process [0-9]* on host"
[ "$(mode)" = shared ] || fail "it was taken from those who share it"
run 0 ps --json --queue q "$url"
worker=$(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' out)
kill -KILL "$worker"
wait "$pid" # it was the worker's timeout
redis DEL 'due:{q}:owner' >gone

# Nobody has it: two jobs are on the leases of the dead.
run 0 verify --queue q "$url"
has out '^owner   none, it is shared: nobody has it open'
has out '^out     2 on a lease$'
run 0 export --queue q "$url"
cp out all.jsonl
[ "$(grep -c '"id"' all.jsonl)" = 4 ] || fail "not 4 jobs"
[ "$(mode)" = shared ] || fail "it is not shared after an export"
run 0 verify --queue q "$url"
has out '^out     0 on a lease$'
run 0 import --queue copy "$url" <all.jsonl
run 1 push --shared --queue copy "$url" <in.txt
has err 'a job has this key already'
run 0 verify --queue copy "$url"
has out '^jobs    7 members of 2 topics'
has out '^whole$'

# Of a group all but one are kept back, and that is right.
printf 'group=g topic=kept 0s a\ngroup=g topic=kept 0s b\ngroup=g topic=kept 0s c\n' |
    "$duectl" push --shared --queue groups "$url" >gone || fail "groups are not put"
[ "$(redis ZCARD 'due:{groups}:g:kept')" = 2 ] || fail "two are not kept back"
run 0 verify --queue groups "$url"
has out '^jobs    3 members of 1 topics'
has out '^whole$'
run 0 restore --queue groups "$url"
has out '^kept .* 3 '
has_not out '^hidden'
redis EVAL "redis.call('ZADD', KEYS[2], 7, redis.call('ZRANGE', KEYS[1], 0, 0)[1])" 2 \
    'due:{groups}:g:kept' 'due:{groups}:t:kept' >gone
run 1 verify --queue groups "$url"
has out 'stands in more than one topic'
run 0 verify --repair --queue groups "$url"
run 0 verify --queue groups "$url"
has out '^whole$'

# One in the order of priority: what says so stays while somebody owns it.
printf 'priority=3 0s low\npriority=9 0s high\npriority=5 0s middle\npriority=255 1h later\n' |
    "$duectl" push --queue ranks "$url" >gone || fail "no jobs by priority"
redis HSET 'due:{ranks}:meta' order priority >gone
run 0 push --shared --queue ranks "$url" <in.txt
[ "$(redis ZCARD 'due:{ranks}:o:')" = "$(redis ZCARD 'due:{ranks}:t:')" ] || fail "not by priority"
run 0 verify --queue ranks "$url"
has out '^order   by priority$'
has out '^jobs    8 members of 2 topics'
has out '^whole$'
redis DEL 'due:{ranks}:o:' >gone
run 1 verify --queue ranks "$url"
has out '^wrong   topic - has other jobs by priority than it has$'
run 0 verify --repair --queue ranks "$url"
run 0 verify --queue ranks "$url"
has out '^order   by priority$'
has out '^whole$'
run 0 export --queue ranks "$url"
[ "$(grep -c '"id"' out)" = 8 ] || fail "not 8 jobs"
[ "$(redis HGET 'due:{ranks}:meta' least_reader)" = 3 ] || fail "older versions may read it"

# What can be wrong.
redis ZREM 'due:{q}:h' mail >gone
wrong 'topic mail has no head'
redis ZADD 'due:{q}:h' 4000000000000000 mail >gone
wrong 'topic mail has a late head'
redis HSET 'due:{q}:jk' 12345678901234 lost >gone
wrong 'stands in jk without a job'
redis HSET 'due:{q}:b' 12345678901234 20000 >gone
wrong 'stands in b without a job'
redis HSET 'due:{q}:k' lost 12345678901234 >gone
wrong "key lost  is nobody's"
redis EVAL "redis.call('ZADD', KEYS[2], 7, redis.call('ZRANGE', KEYS[1], 0, 0)[1])" 2 \
    'due:{q}:t:mail' 'due:{q}:l:mail' >gone
wrong 'stands in more than one topic'
redis EVAL "redis.call('ZADD', KEYS[2], 7, redis.call('ZRANGE', KEYS[1], 0, 0)[1])" 2 \
    'due:{q}:t:mail' 'due:{q}:l:' >gone
wrong 'stands in more than one topic'
redis DEL 'due:{q}:t:mail' >gone
wrong 'stands in no topic'

# The doctor tries what a shared queue needs, and what an owned one does not.
run 1 doctor --queue q "$url"
has out 'every command that the library needs, also for a shared queue$'
redis ACL SETUSER half on '>half' '~due:{q}:*' '&due:{q}:*' +@all -publish -evalsha >gone
run 1 doctor --queue q "unix://half:half@$REDIS_SOCKET"
has out '^CHANGE  permissions .*: EVALSHA PUBLISH$'
run 1 doctor --queue none "unix://half:half@$REDIS_SOCKET"
has_not out 'PUBLISH'

# A topic that is paused has no head, and that is right.
redis HSET 'due:{q}:topics' mail '1 0' >gone
redis ZREM 'due:{q}:h' mail >gone
run 0 verify --queue q "$url"
has out '^whole$'

# What was set for a topic without a job stays.
redis HSET 'due:{q}:topics' empty '1 0' limited '0 3' plain 0 >gone
run 0 verify --queue q "$url"
has out '^unused  1 topics'
run 0 verify --repair --queue q "$url"
[ "$(redis HGET 'due:{q}:topics' empty)" = '1 0' ] || fail "a pause is gone"
[ "$(redis HGET 'due:{q}:topics' limited)" = '0 3' ] || fail "a limit is gone"
[ "$(redis HEXISTS 'due:{q}:topics' plain)" = 0 ] || fail "a topic without a job is left"

# An opening was killed in the middle.
redis HSET 'due:{q}:meta' mode owning >gone
redis SET 'due:{q}:fence' 7:a >gone
run 0 verify --queue q "$url"
has out '^mode    shared before, becomes owned, and that was interrupted'
redis SET 'due:{q}:owner' '1 elsewhere a b 1 2' PX 60000 >gone
redis ZREM 'due:{q}:h' '' >gone
run 0 verify --queue q "$url"
has out '^mode    shared before, becomes owned, and that is under way$'
has out '^whole$'
redis DEL 'due:{q}:owner' >gone
run 0 push --shared --queue q "$url" </dev/null
[ "$(mode)" = shared ] || fail "it was not gone on with"
run 0 verify --queue q "$url"
has out '^whole$'
finish
