#!/bin/sh
# duectl verify --repair: whatever stands in the wrong place is moved, and only what cannot be read
# is set aside.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
put_jobs=$(dirname "$with_redis")/put_jobs
number=0

# damage LUA: a queue of its own, with a job of every kind, and this done to it.  id(TEXT) is the id
# of the job with that payload, to(TOPIC) the key of a topic's zset.
damage()
{
    number=$((number + 1))
    queue=r$number
    "$put_jobs" "$url" "$queue" 20 || fail "no jobs are put"
    run 0 restore --list --queue "$queue" "$url"
    cp out list
    base="due:{$queue}:"
    redis --raw eval '
local base, j, a, dead, topics = KEYS[1], KEYS[1] .. "j", KEYS[1] .. "a", KEYS[1] .. "dead",
    KEYS[1] .. "topics"
local all = redis.call("HGETALL", j)
local function to(topic) return base .. "t:" .. topic end
local function id(text)
    for i = 1, #all, 2 do
        if string.sub(all[i + 1], -#text) == text then return all[i] end
    end
    return error("no job " .. text)
end
local function call(...) return redis.call(...) end
'"$1"'
return "done"' 1 "$base" >lua
    echo done | same lua
}

# found COUNT PATTERN: so much is wrong with it, among it this.
found()
{
    run 1 verify --queue "$queue" "$url"
    has out "$2"
    has out "^$1 wrong; --repair"
    run 0 verify --repair --queue "$queue" "$url"
    has out "^$1 wrong, $1 repaired$"
}

# repaired ASIDE [LIST]: it is whole, has all jobs that it had, as they were (LIST: those there),
# and so many are set aside.
repaired()
{
    run 0 verify --queue "$queue" "$url"
    has out '^whole$'
    run 0 restore --list --queue "$queue" "$url"
    sed '/^jobs /d' out | sort >now
    sed '/^jobs /d' "${2:-list}" | sort | same now
    aside=$(redis hlen "${base}q")
    [ "$aside" = "$1" ] || fail "$queue: $aside set aside, not $1"
}

# opens: a program that opens it finds nothing to be put right.
opens()
{
    start run --store "$url" --queue "$queue" --ack-lines opens.due
    line opened
    kill -TERM "$pid"
    ended 143
    has_not err 'wrong place'
    has_not err 'set aside'
}
echo '0s opened' >opens.due

# less TEXT...: the list without these jobs.
less()
{
    cp list fewer
    for text; do
        grep -v "  $text\$" fewer >fewer.new
        mv fewer.new fewer
    done
}

other='stands in another topic than its own, or at another time$'

# In another topic: an entered one, one that is entered nowhere, and one that is new to the job's.
damage 'call("ZADD", to("fax"), 1000, id("a letter")) call("ZREM", to("mail"), id("a letter"))'
found 1 "$other"
repaired 0
damage 'call("ZADD", to("new"), 1000, id("plain")) call("ZREM", to(""), id("plain"))'
found 2 "$other"
repaired 0
[ "$(redis hexists "${base}topics" new)" = 0 ] || fail "a topic that nobody uses is entered"
damage 'for _, text in ipairs({ "a letter", "a parcel", "with a ladder", "tried" }) do
    call("ZADD", to(""), 1000, id(text))
end
call("DEL", to("mail")) call("HDEL", topics, "mail")'
found 4 "$other"
repaired 0

# All of them, each in a topic of another.
damage 'call("RENAME", to(""), to("x")) call("RENAME", to("mail"), to(""))
call("RENAME", to("fax"), to("mail")) call("RENAME", to("x"), to("fax"))'
found 36 "$other"
repaired 0
opens

# At a time that is no number.
for time in inf -inf 1e300; do
    damage "call('ZADD', to('mail'), '$time', id('tried'))"
    found 1 "$other"
    repaired 0
done

# At another time, in two topics, and in two of which none is its own.
damage 'call("ZADD", to("mail"), 5, id("tried"))'
found 1 "$other"
repaired 0
damage 'call("ZADD", to("mail"), 5, id("plain"))'
found 1 'stands in more than one topic'
repaired 0
damage 'call("ZADD", to("mail"), 5, id("plain")) call("ZADD", to("fax"), 6, id("plain"))
call("ZREM", to(""), id("plain"))'
found 1 'stands in more than one topic'
repaired 0

# Alive among the dead, dead in a topic, both, and dead at another time.
damage 'call("ZADD", dead, 5, id("with a key")) call("ZREM", to(""), id("with a key"))'
found 1 "$other"
repaired 0
damage 'call("ZADD", to("fax"), 5, id("dead")) call("ZREM", dead, id("dead"))'
found 1 "$other"
repaired 0
damage 'call("ZADD", to("fax"), 5, id("dead"))'
found 1 'is dead and not$'
repaired 0
damage 'call("ZADD", dead, 5, id("dead"))'
found 1 "$other"
repaired 0

# Nowhere: of a topic that is entered or not, of no topic, with a key, and dead.
damage 'call("ZREM", to("mail"), id("a letter")) call("ZREM", to(""), id("with a key"))
call("DEL", to("fax")) call("HDEL", topics, "fax") call("DEL", dead)'
found 4 'a record that stands in no topic, nor among the dead$'
repaired 0

# Only what cannot be read is set aside: a damaged record, another job's, and one that is missing.
damage 'call("HSET", j, id("a letter"), call("HGET", j, id("a letter")) .. "!")
call("HSET", j, id("a parcel"), call("HGET", j, id("a drawing")))
call("HDEL", j, id("plain"))'
less 'a letter' 'a parcel' plain
found 3 "a damaged record, or another job's$"
has out 'stands in a topic without a record$'
repaired 3 fewer
damage 'call("HSET", a, id("tried"), "x")
call("HSET", j, id("urgent"), "?") call("ZREM", to(""), id("urgent"))'
less tried urgent
found 2 "a damaged record, or another job's$"
repaired 2 fewer

# Of a later version: it stays as it is, although it stands in the wrong place.
damage 'local function byte(digits) return string.char(tonumber(digits, 16)) end
local function bytes(hex) return (hex:gsub("..", byte)) end
local one = bytes("ff00000000002a00000000000001")
call("HSET", j, one, bytes("0200835f0000a656cfcfee386f6620746f6d6f72726f77"))
call("ZADD", to("fax"), 5, one)'
run 1 verify --repair --queue "$queue" "$url"
has out 'written by a later version: not touched$'
has out '^1 wrong, 0 repaired$'
[ "$(redis zcount "${base}t:fax" 5 5)" = 1 ] || fail "a job of a later version was moved"
[ "$(redis exists "${base}q")" = 0 ] || fail "a job of a later version was set aside"

# What is left over goes.
damage 'call("HSET", a, string.rep("x", 14), "x") call("HSET", topics, "unused", 0)'
found 1 'times and counts without a job$'
repaired 0
[ "$(redis hexists "${base}topics" unused)" = 0 ] || fail "a topic that nobody uses is entered"

# Many at once, over several pages.
"$put_jobs" "$url" many 3000 || fail "no jobs are put"
queue=many base='due:{many}:'
run 0 restore --list --queue many "$url"
cp out list
redis rename "${base}t:" "${base}t:y" >/dev/null
redis hset "${base}topics" y 0 >/dev/null
found 3011 "$other"
repaired 0

# A queue that gets its first jobs of a topic while it is looked at is not suspected.
queue=busy
seq -f '1d job %.0f' 40000 >busy.due
"$duectl" run --store "$url" --queue busy --ack-lines busy.due >/dev/null 2>err &
pid=$!
pids=$pid
tries=0
until grep -q 'ack 40000$' err || [ $tries = 1000 ]; do
    tries=$((tries + 1))
    sleep 0.01
done
kill -TERM "$pid"
wait "$pid"
pids=
(sleep 0.05; exec "$put_jobs" "$url" busy) &
run 0 verify --queue busy "$url"
wait
has out '^whole$'
finish
