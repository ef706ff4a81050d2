#!/bin/sh
# What other libraries keep in a Redis comes into a store: from servers filled as their clients fill
# them, and from hostile ones.
redis_options="--requirepass canary-4b1d"
. "$(dirname "$0")/cli_lib"
serve
here=$(cd "$(dirname "$0")" && pwd)/foreign
cd "$dir" || exit 1
command -v python3 >none || exit 77
export REDISCLI_AUTH=canary-4b1d
source=unix://:canary-4b1d@$REDIS_SOCKET
"$duectl" import a.db <"$here/../export.jsonl" >none 2>&1 || exit 77 # built without SQLite
redis acl setuser reader on '>looks' '~*' -@all +@read +@connection >none
reader=unix://reader:looks@$REDIS_SOCKET

# fill KIND: the server holds that, and $of has the options that import it.
fill()
{
    redis flushall >none
    redis <"$here/$1.redis" >filled
    has_not filled -i '^.*err'
    of="--from $1"
    [ $1 != bullmq ] || of="$of --source-queue mail"
    [ $1 != delayqueue ] || of="$of --source-queue orders"
}

# All that the server holds.
whole()
{
    python3 "$here/dump.py" "$REDIS_SOCKET"
}

# jobs STORE: its jobs, without times that are those of the import.
jobs()
{
    run 0 export "$1"
    sed '1d;$d' out | LC_ALL=C sort |
        sed "/\"data\":\($undated\)/s/\"deadline\":\"20[^\"]*\"/\"deadline\":\"now\"/"
}
undated='"hangs"}\|"has failed once"\|{"base64":"AP8g[^}]*}}\|"ready after it"'

for kind in asynq bullmq delayqueue; do
    fill $kind
    whole >before
    status=1
    [ $kind != delayqueue ] || status=0
    run $status import $of --source "$reader" $kind.db
    n=$(wc -l <"$here/$kind.jsonl")
    has out "^put     $n jobs, 0 kept keys$"
    cp err said
    jobs $kind.db >came
    same came <"$here/$kind.jsonl"
    whole >after
    same after <before
    run 0 verify $kind.db

    # Once more: refused, or nothing is doubled, and undated jobs keep their time.
    run 0 export $kind.db
    cp out first
    [ $kind != delayqueue ] || # what was ready first comes first
        sed -n 's/.*"base64":"AP8g.*/1/p; s/.*"ready after it".*/2/p' out | tr -d '\n' |
        grep -q '^12$' || fail "the order of what is ready"
    run 1 import $of --source "$reader" $kind.db
    has err 'an import goes into an empty one'
    run $status import --again $of --source "$reader" $kind.db
    has out "^put     0 jobs, 0 kept keys; $n were there$"
    run 0 export $kind.db
    same out <first
    run $status import --check $of --source "$reader"
    has out "^fine    $n jobs"

    # Into a server.
    run $status import $of --source "$reader" --queue $kind "$source"
    run 0 export --queue $kind "$source"
    n=$((n + 2))
    [ "$(wc -l <out)" = $n ] || fail "$kind: not all came into a server"
done

fill asynq
run 1 import $of --source "$reader" b.db
has err '^duectl: not carried over: tasks that are done: 1$'
has err '^duectl: not carried over: groups whose tasks wait to be put together: 1$'
has err '^duectl: not carried over: unique locks: of 1 jobs$'
run 0 import $of --source-queue default --source "$reader" c.db
has out '^put     4 jobs'
fill bullmq
run 1 import $of --source "$reader" d.db
has err '^duectl: not carried over: job schedulers: 1$'
has err '^duectl: not carried over: deduplication: of 1 jobs$'
has err '^duectl: not carried over: a backoff of its own: of 1 jobs$'
run 1 import --from bullmq --source-queue mail --source-prefix other --source "$reader" e.db
has err 'there are no jobs of bullmq$'
run 1 import --from bullmq --source-queue none --source "$reader" e.db
[ ! -e e.db ] || fail "a store was made for nothing"

# Records of asynq that are none: each is said, the others come.
fill asynq
binary=$(redis hget 'asynq:{mail}:t:first' msg)
id=0
bad() # MESSAGE as redis-cli reads it
{
    id=$((id + 1))
    printf 'LPUSH "asynq:{mail}:pending" "bad-%d"\nHSET "asynq:{mail}:t:bad-%d" msg "%s"\n' \
        $id $id "$1" | redis >none
}
bad ''
bad '\x1a\x05bad-2\x12'                                              # cut off
bad '\x1a\x05bad-3\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x'     # 2^64 bytes
bad '\x1a\x05bad-4\x12\xff\xff\xff\xff\x0fx'                         # 2^32 bytes
bad '\x1a\x05bad-5\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01'  # no varint
bad '\x1a\x05bad-6\x13\x14'                                          # a group
bad '\x1a\x05bad-7\x10\x05'                                          # a payload that is a number
bad '\x1a\x05other'
bad '\x1a\x05bad-9\x28'
bad '\x00\x00\x1a\x06bad-10'
redis lpush 'asynq:{mail}:pending' bad-11 bad-12 >none
redis set 'asynq:{mail}:t:bad-12' text >none
redis zadd 'asynq:{mail}:scheduled' -5 first >none
redis zadd 'asynq:{mail}:retry' inf first >none
long=$(printf '%300s' x)
bad "\\x0a\\xac\\x02$long\\x1a\\x06bad-11"
redis hset 'asynq:{mail}:t:bad-11' msg "$(redis hget 'asynq:{mail}:t:bad-11' msg)" >none
run 1 import --from asynq --source "$reader" f.db
has out '^put     9 jobs'
for number in 1 2 3 4 5 6 7 8 9 10 11 12; do
    has err "^duectl: task bad-$number of queue mail: .*: it is left out$"
done
has err 'task bad-3 of queue mail: its record is no task of asynq'
has err 'task bad-8 of queue mail: its record is that of another task'
has err 'task bad-11 of queue mail: its name is longer'
has err 'task bad-12 of queue mail: its record is of another type'
[ "$(grep -c 'task first of queue mail: its time cannot be read' err)" = 2 ] || fail "two times"

# Numbers beyond all bounds are cut, or none; a field that is not known is passed over.
fill asynq
redis del 'asynq:{mail}:scheduled' >none
minus_one='\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01'
most='\xff\xff\xff\xff\x07'
printf 'LPUSH "asynq:{mail}:pending" big\nHSET "asynq:{mail}:t:big" msg "%s" pending_since x\n' \
    "\\x1a\\x03big\\x12\\x01b\\x28$minus_one\\x30$most\\xfa\\x7f\\x01z" | redis >none
run 1 import $of --source "$reader" g.db
run 0 export g.db
has out '"attempts":2147483647,"failures":2147483647,.*"attempts_max":1,.*"data":"b"'

# A task in two lists, and a key of another type.
redis rpush 'asynq:{mail}:active' first >none
run 1 import $of --source "$reader" h.db
has err '^duectl: task first of queue mail: it was met before: its queues are in use$'
redis set 'asynq:{default}:active' text >none
run 1 import $of --source "$reader" i.db
has err 'active: the server says: WRONGTYPE'
[ ! -e i.db ] || fail "a store was made"
redis set asynq:queues text >none
run 1 import $of --source "$reader" i.db

# BullMQ.
fill bullmq
deep=$(printf '%70s' '' | tr ' ' '[')
redis hset bull:mail:7 opts '{"attempts":' >none
redis hset bull:mail:own opts "{\"a\":$deep}" >none
redis hset bull:mail:10 opts '{"attempts":1e99,"backoff":1e300}' priority 99999999999999999999 >none
redis hset bull:mail:11 timestamp never atm -3 priority -1 opts '{"attempts":-4,"backoff":{}}' >none
redis lpush bull:mail:wait 0:0 gone >none
redis hdel bull:mail:later data >none
redis zadd bull:mail:delayed nan later 2>&1 | grep -q 'not a valid float' || fail "nan"
redis zadd bull:mail:delayed inf later-2 >none
run 1 import $of --source "$reader" j.db
has out '^put     7 jobs'
has err 'job 7 of queue mail: its options cannot be read'
has err 'job own of queue mail: its options cannot be read'
has err 'job gone of queue mail: it has no record'
has err 'job later of queue mail: it has no record, or no data'
has err 'job later-2 of queue mail: its time cannot be read'
has_not err 'job 0:0'
run 0 export j.db
has out '"headers":"urgent",.*"attempts_max":2147483647,"delay_ns":31536000000000000}'

# delayqueue.
fill delayqueue
redis del dp:orders:msg:0b1c0000-0000-4000-8000-000000000001 >none
redis hset dp:orders:retry:cnt 0b1c0000-0000-4000-8000-000000000002 -1 >none
redis rpush dp:orders:ready "$(printf 'es\033[31mcape')" >none
run 1 import $of --source "$reader" k.db
has out '^put     5 jobs'
has err '000000000001 of queue orders: its payload is gone'
has err '000000000002 of queue orders: the number of its tries cannot be read'
has err 'message es?\[31mcape of queue orders'

# Many of them, an import that is killed, and queues that change while it reads.
redis flushall >none
redis eval 'for i = 1, 20000 do
        local id = string.format("%05d", i)
        redis.call("SET", "dp:orders:msg:" .. id, "job " .. id)
        redis.call("ZADD", "dp:orders:pending", 1953878400 + i, id)
    end' 0 >none
begun() # STORE: the import into it has come some way, and stands still
{
    "$duectl" import $of --source "$reader" "$1" >out 2>err &
    pids=$!
    tries=0
    until "$duectl" restore "$1" 2>none | grep -q '^jobs    [0-9][0-9][0-9]*,'; do
        tries=$((tries + 1))
        [ $tries -lt 1000 ] || { fail "no batch has landed in $1"; break; }
        sleep 0.01
    done
    kill -STOP $pids
}
begun l.db
kill -9 $pids
wait $pids 2>none
pids=
run 0 import --again $of --source "$reader" l.db
has out '^put     [0-9]* jobs, 0 kept keys; [0-9][0-9]* were there$'
run 0 export l.db
[ "$(sort -u out | wc -l)" = 20002 ] || fail "not each job once"
begun m.db
redis zadd dp:orders:pending 1985500800 more >none
redis set dp:orders:msg:more more >none
kill -CONT $pids
wait $pids
[ $? = 1 ] || fail "queues that change: status"
has err 'the queues have changed meanwhile'
pids=

# On a terminal it says how far it is, once that takes a second.
redis client pause 1300 all >none
python3 -c 'import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
try:
    part = os.read(terminal, 4096)
    while part:
        said += part
        part = os.read(terminal, 4096)
except OSError:
    pass
sys.stdout.buffer.write(said)
os.waitpid(pid, 0)' "$duectl" import $of --source "$reader" n.db | tr '\r' '\n' >out
has out '^duectl: [0-9]* of 20001 read'
has out 'put     20001 jobs'

# What goes wrong.
run 2 import --from beanstalkd --source "$reader" z.db
run 2 import --from asynq z.db
has err '^duectl: --from: it needs --source URL$'
run 2 import --from bullmq --source "$reader" z.db
has err 'it needs --source-queue NAME$'
run 2 import --source "$reader" z.db </dev/null
has err '^duectl: --source: goes with --from$'
run 2 import --from asynq --source-queue '' --source "$reader" z.db
run 2 import --from asynq --source /some/file z.db
run 3 import --from asynq --source "unix://reader:canary-wrong@$REDIS_SOCKET" z.db
has_not err canary
run 3 import --from asynq --source unix:///nowhere/at/all z.db
[ ! -e z.db ] || fail "a store was made of what went wrong"
unread 3 import $of --source "$reader" o.db
finish
