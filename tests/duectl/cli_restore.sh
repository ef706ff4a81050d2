#!/bin/sh
# The commands that look at a stored queue, and at a server.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1

# A queue that nobody has, and one with jobs.
run 1 restore --queue none "$url"
has err 'none: there is no such queue$'
printf '1h the tea\n2h the egg\n@2100-01-01T00:00:00Z the last\n' >s.due
"$duectl" run --store "$url" --queue q --ack-lines s.due >/dev/null 2>acks &
pid=$!
pids=$pid
tries=0
until grep -q 'ack 3' acks || [ $tries = 1000 ]; do
    tries=$((tries + 1))
    sleep 0.01
done
run 0 restore --queue q "$url"
has out "^owner   process $pid on host .*, which lives"
has out '^jobs    3, 0 of them dead; 0 damaged'
has out '^-  *3  .*  2100-01-01T00:00:00.000Z '
run 0 restore --list --queue q "$url"
[ "$(grep -c '^ff[0-9a-f]*  2[01]..-' out)" = 3 ] || fail "not every job is listed"
has out '^ff.*Z    0  0  0  7  -  the tea$'
run 0 verify --queue q "$url"
has out '^whole$'
redis hset 'due:{q}:a' table 'a field that is no entry' >/dev/null
run 0 verify --queue q "$url"
run 3 verify --repair --queue q "$url"
has err "^duectl: not repaired: .*process $pid on host"
kill -9 "$pid"
wait "$pid" 2>/dev/null
pids=

# Damage of every kind.
redis eval '
local t, j, a = KEYS[1], KEYS[2], KEYS[3]
local id = redis.call("ZRANGE", t, 0, -1)
local function other(id, n) return string.sub(id, 1, 13) .. string.char(n) end
local function copy(n)
    redis.call("HSET", j, other(id[1], n), redis.call("HGET", j, id[1]))
end
redis.call("ZADD", t, 1000, id[2])                  -- at another time
redis.call("ZADD", KEYS[4], 2000, id[3])            -- twice, and in a topic that is not entered
copy(200)                                           -- the record of another job, in no topic
redis.call("ZADD", t, 3000, other(id[1], 201))      -- no record
copy(202)
redis.call("ZADD", t, 3000, other(id[1], 202))      -- the record of another job
redis.call("HSET", a, other(id[1], 203), "x")       -- an entry of nobody
redis.call("HSET", KEYS[5], "unused", 0)
return 0' 5 'due:{q}:t:' 'due:{q}:j' 'due:{q}:a' 'due:{q}:t:other' 'due:{q}:topics' >/dev/null
run 1 verify --queue q "$url"
cp out before
for what in 'its own, or at another time' 'stands in more than one topic' 'without a record' \
    'a damaged record' 'without a job' 'topic other is not entered'; do
    has out "$what"
done
has out '^7 wrong; --repair'
run 1 verify --queue q "$url"
sed 1,2d before >wanted
sed 1,2d out | cmp -s - wanted || fail "looking has changed something"
run 0 verify --repair --queue q "$url"
has out '^7 wrong, 7 repaired$'
run 0 verify --queue q "$url"
has out '^whole$'
has out '^jobs    3 members'
has out '^aside   3 damaged'
run 0 restore --list --queue q "$url"
for text in 'the tea' 'the egg' 'the last'; do
    has out "$text\$"
done
[ "$(redis hkeys 'due:{q}:a')" = table ] || fail "an entry is left over"

# A queue with a dead job, both with keys, and a key that is kept; then damage of these.
redis eval '
local function byte(digits) return string.char(tonumber(digits, 16)) end
local function bytes(hex) return (hex:gsub("..", byte)) end
local one, two = bytes("ff00000000002a00000000000001"), bytes("ff00000000002a00000000000002")
local meta = redis.call("HGETALL", KEYS[1])
redis.call("HSET", KEYS[2], unpack(meta))
redis.call("HSET", KEYS[3], one,
    bytes("0110071b0000a656cfcfee3809677265656e2074656174686520677265656e"),
    two, bytes("0110c7110000a656cfcfee3809626c61636b2074656174686520626c61636b"))
redis.call("HSET", KEYS[4], one, bytes("010153c20000a656cfcfee380000a656cfcfee38" ..
    "03000000030000000100002a36fe9c97170b6e6f207375636820746561"))
redis.call("ZADD", KEYS[5], "4102444800000000", two)
redis.call("ZADD", KEYS[6], "1700000000000000", one)
redis.call("HSET", KEYS[7], "", 0)
redis.call("HSET", KEYS[8], "green tea", one, "black tea", two, "white tea", one)
redis.call("ZADD", KEYS[9], "4102444800000000", "white tea")
return 0' 9 'due:{q}:meta' 'due:{d}:meta' 'due:{d}:j' 'due:{d}:a' 'due:{d}:t:' 'due:{d}:dead' \
    'due:{d}:topics' 'due:{d}:k' 'due:{d}:kx' >/dev/null
run 0 verify --queue d "$url"
has out '^jobs    1 members of 1 topics, 1 dead, 2 records, 1 with'
has out '^keys    3, 1 of them kept'
has out '^whole$'
run 0 restore --queue d "$url"
has out '^jobs    2, 1 of them dead; 0 damaged'
has out '^keys    1 kept after their job is gone$'
has out '^(dead)  *1  2023-11-14T22:13:20.000Z '
run 0 restore --list --queue d "$url"
has out '^ff.*01.*  2023-11-14T22:13:20.000Z    0  3  3  9  -  the green  buried: no such tea$'
has out '^ff.*02.*  2100-01-01T00:00:00.000Z    0  0  0  9  -  the black$'
redis eval '
local one = redis.call("ZRANGE", KEYS[1], 0, 0)[1]
redis.call("ZADD", KEYS[1], 5, one)                 -- dead at another time
redis.call("ZADD", KEYS[2], 5, one)                 -- and not dead
redis.call("HSET", KEYS[3], "black tea", one)       -- of a job that does not know of it
redis.call("ZADD", KEYS[4], 5, "green tea")         -- kept, and its job is there
redis.call("HSET", KEYS[3], "nothing", one)         -- a key of nobody
redis.call("ZADD", KEYS[4], 5, "less")              -- kept for nobody
return 0' 4 'due:{d}:dead' 'due:{d}:t:' 'due:{d}:k' 'due:{d}:kx' >/dev/null
run 1 verify --queue d "$url"
has out '^wrong   ff.*  stands in more than one topic, or is dead and not$'
has out '^wrong   key black tea  is nobody.s$'
has out '^wrong   key green tea  is kept, and a job has it$'
has out '^wrong   key nothing  is nobody.s$'
has out '^wrong   key less  is kept, and nobody knows for whom$'
has out '^5 wrong; --repair'
run 0 verify --repair --queue d "$url"
has out '^5 wrong, 5 repaired$'
run 0 verify --queue d "$url"
has out '^jobs    1 members of 1 topics, 1 dead, 2 records, 1 with'
has out '^keys    2, 1 of them kept'
has out '^without 1 jobs whose key was taken over$'
has out '^whole$'
run 0 restore --queue d "$url"
has out '^(dead)  *1  2023-11-14T22:13:20.000Z '

# The doctor: this server keeps nothing; then one that does.
run 1 doctor "$url"
has out '^CHANGE  persistence  none: set appendonly yes'
has out '^ok      eviction'
has out '^ok      latency '
has out '^ok      clock '
has out '^ok      permissions '
redis config set appendonly yes >/dev/null
redis config set appendfsync always >/dev/null
run 0 doctor "$url"
redis config set maxmemory-policy allkeys-lru >/dev/null
run 1 doctor "$url"
has out '^CHANGE  eviction '
redis config set maxmemory-policy noeviction >/dev/null
redis acl setuser some on '>pass' '~due:{q}:*' +@all -eval -zadd -config >/dev/null
run 1 doctor --queue q "unix://some:pass@$REDIS_SOCKET"
has out '^CHANGE  permissions  refused on due:{q}:\* : ZADD EVAL$\|ZADD.*EVAL'
has out '^CHANGE  persistence .*config|get'
[ -z "$(redis --scan --pattern '*doctor*')" ] || fail "the doctor has left something behind"

# No server, and wrong use.
run 3 doctor "unix://$dir/nobody"
has err 'cannot connect: '
run 3 restore "unix://$dir/nobody"
run 3 verify "unix://$dir/nobody"
run 2 restore
has err 'DUE_STORE_URL'
run 2 restore --repair "$url"
run 2 verify --queue 'a*' "$url"
run 0 verify --help
run 0 restore --help
run 0 doctor --help
finish
