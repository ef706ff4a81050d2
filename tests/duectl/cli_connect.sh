#!/bin/sh
# Where the URL of a server stands, and how the commands end without a server, or without enough
# of one: all alike.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
put_jobs=$(dirname "$with_redis")/put_jobs
redis config set appendonly yes >/dev/null
redis config set appendfsync everysec >/dev/null

# The URL stands alone, behind --store or in the environment, in all of them.
echo '0s tea' >s.due
for how in "--store $url" "--store=$url" "$url"; do
    run 0 run $how --queue a s.due
    echo tea | same out
    run 0 run s.due $how --queue a
    echo tea | same out
    run 0 restore $how --queue a
    run 0 verify --queue a $how
    run 0 doctor --queue a $how
    start work $how --queue b --exec cat
    await_owner=0
    until redis exists 'due:{b}:owner' | grep -q 1 || [ $await_owner = 500 ]; do
        await_owner=$((await_owner + 1))
        sleep 0.01
    done
    kill -TERM "$pid"
    ended 143
done
DUE_STORE_URL=$url run 0 restore --queue a
DUE_STORE_URL=unix:///nowhere run 0 restore --queue a "$url"
for command in 'run s.due' 'work --exec true' restore verify doctor; do
    run 2 $command --store "$url" "$url"
    has err 'one URL at most'
    run 2 $command "$url" "$url"
    has err 'one URL at most'
    run 2 $command --store 'redis://a:b:c'
done

# Without a password, or with a wrong one, there is no connection.
redis acl setuser some on '>pass' '~*' +@all >/dev/null
for command in 'run s.due' 'work --exec true' restore verify doctor; do
    run 3 $command "unix://some:wrong@$REDIS_SOCKET"
    has err 'refuses the user or the password'
done

# A connection that is lost in the middle says neither that the queue is whole nor that it is not.
# The server closes it when an answer is longer than this.
"$put_jobs" "$url" q 3000 || fail "no jobs are put"
redis config set client-output-buffer-limit 'normal 40000 0 0' >/dev/null
for command in verify 'verify --repair'; do
    run 3 $command --queue q "$url"
    has err 'no answer: the server closed the connection$'
    has_not out 'whole'
    has_not out 'wrong'
done
redis config set client-output-buffer-limit 'normal 0 0 0' >/dev/null
run 0 verify --queue q "$url"
has out '^whole$'

# Nor does a server that refuses what has to be read.
for command in hscan hmget zrange scan; do
    redis acl setuser less on '>pass' '~*' +@all "-$command" >/dev/null
    run 3 verify --queue q "unix://less:pass@$REDIS_SOCKET"
    has err 'the server says: NOPERM'
    has_not out 'whole'
    has_not out 'wrong'
done

# What is required, and what is assumed where the server does not say.
run 3 run "$url" --require always s.due
has err 'in force is everysec, required is always; set appendonly yes and appendfsync always$'
run 3 work "$url" --require always --exec true
has err 'appendfsync always$'
redis config set appendonly no >/dev/null
run 3 run "$url" --require everysec s.due
has err 'in force is none, required is everysec; .* appendfsync everysec or always$'
redis config set appendonly yes >/dev/null
redis acl setuser mute on '>pass' '~*' +@all -config >/dev/null
mute=unix://mute:pass@$REDIS_SOCKET
run 3 run "$mute" --require everysec s.due
has err 'in force is unknown, .*; permit INFO and CONFIG GET, or say what to assume$'
run 0 run "$mute" --require everysec --assume always s.due
has_not err warning
run 3 run "$mute" --require always --assume everysec s.due
run 1 doctor "$mute"
has out '^CHANGE  persistence .*config|get, or say --assume$'
run 0 doctor --assume always "$mute"
has out '^ok      persistence  unknown, and taken for always, as --assume says$'
run 2 run "$mute" --assume much s.due
has err 'much: --assume takes none, everysec or always$'
run 2 doctor "$mute" --assume much
run 2 run --assume none s.due
has err '^duectl: --assume: goes with --store$'
finish
