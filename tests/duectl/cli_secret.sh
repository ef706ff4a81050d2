#!/bin/sh
# A password is seen nowhere: not by ps, not by commands, not in what is said.
redis_options="--requirepass canary-7f3a"
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
secret=canary-7f3a
url=unix://:$secret@$REDIS_SOCKET
redis()
{
    REDISCLI_AUTH=$secret redis-cli -s "$REDIS_SOCKET" "$@"
}

# shown PID: what others see of it, when it has come so far.
shown()
{
    tries=0
    until tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -q '\*@'; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { fail "the password is never hidden"; return; }
        sleep 0.01
    done
    tr '\0' '\n' <"/proc/$1/cmdline" >>all
    tr '\0' '\n' <"/proc/$1/environ" >>all
}

# stored: wait until its job is in the store, so that there is a queue when it has gone.
stored()
{
    tries=0
    until redis --scan --pattern '*:j' | grep -q .; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { fail "the job is never stored"; return; }
        sleep 0.01
    done
}

: >all
echo '1h later' >s.due
for how in "--store $url" "--store=$url"; do
    "$duectl" run $how s.due >>all 2>&1 &
    pid=$!
    pids=$pid
    shown "$pid"
    stored
    kill -TERM "$pid"
    wait "$pid"
    pids=
done

# From the environment, and not to commands.
echo '0s go' >s.due
DUE_STORE_URL=$url "$duectl" run --queue e --stats \
    --exec 'env; tr "\0" "\n" </proc/$PPID/environ' s.due >>all 2>&1 ||
    fail "from the environment: status $?"
grep -q '^left       0$' all || fail "the variable was not used"
DUE_STORE_URL=$url "$duectl" restore >>all 2>&1 || fail "restore from the environment"
DUE_STORE_URL=$url "$duectl" verify --repair >>all 2>&1 || fail "verify from the environment"
"$duectl" verify "$url" >>all 2>&1 || fail "verify"
"$duectl" doctor "$url" >>all 2>&1
[ $? = 1 ] || fail "doctor, of a server that keeps nothing"

# In what is said of mistakes.
for bad in "$url/x?db=a" "redis://:$secret@/0" "redis://u:$secret@host:99999" \
    "redis:/$secret@host" "unix://:$secret%00@/x"; do
    for command in restore verify doctor ls export import push 'show -' 'cancel -' 'kick -' \
        'dead ls' 'dead kick --all' 'clear --yes' stats metrics; do
        echo ff000000000001000000000000000000 >id
        [ "$command" = import ] && echo '{"due_export":1}' >id
        timeout 20 "$duectl" $command --store "$bad" <id >>all 2>&1
        [ $? = 2 ] || fail "$command with a wrong address"
    done
done
for bad in "$url/x?db=a" "redis://:$secret@/0" "u:$secret@host"; do
    for option in "--source $bad" "--source=$bad"; do
        timeout 20 "$duectl" import --from asynq $option new.db >>all 2>&1
        [ $? = 2 ] || fail "import from a wrong address"
    done
done
"$duectl" import --from asynq --source "$url" new.db >>all 2>&1
[ $? = 1 ] || fail "import from a server that has nothing"
"$duectl" export "$url" >>all 2>&1 || fail "export"
"$duectl" ls "$url" >>all 2>&1 || fail "ls"
"$duectl" export "$url" 2>>all | "$duectl" import --queue copy "$url" >>all 2>&1 || fail "import"
bad=unix://:$secret-wrong@$REDIS_SOCKET
echo '{"due_export":1}' | timeout 20 "$duectl" import "$bad" >>all 2>&1
[ $? = 3 ] || fail "import with a wrong password"
echo ff000000000001000000000000000000 >id
for command in restore verify doctor ls export 'work --exec true' run push 'show -' 'cancel -' \
    'dead ls' 'dead drop --all --yes' 'clear --yes' stats metrics; do
    timeout 20 "$duectl" $command "$bad" >>all 2>&1 <id
    [ $? = 3 ] || fail "$command with a wrong password"
done
timeout 20 "$duectl" run --store "$url" --stroe x >>all 2>&1
for option in --stroe --stor --url; do # two mistakes, and what getopt takes for --store
    for command in 'run /dev/null' 'work --exec true' verify restore doctor ls export \
        push show 'dead ls' clear stats; do
        timeout 2 "$duectl" $command "$option=redis://u:$secret@[bad" >>all 2>&1
        [ $? = 2 ] || fail "$command with $option"
    done
done
timeout 20 "$duectl" verify "REDIS://u:$secret@host" "REDIS://u:$secret@host" >>all 2>&1
timeout 20 "$duectl" run --store "redis:/$secret@host" s.due >>all 2>&1
[ $? = 2 ] || fail "run with a wrong address"
timeout 20 "$duectl" restore "$url" "$url" >>all 2>&1
has_not all "$secret"
finish
