#!/bin/sh
# Dead jobs, and whole queues: listed, kicked, dropped, cleared; what destroys asks first.
. "$(dirname "$0")/cli_lib"
serve
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1

# asked STATUS ANSWER ARG...: run duectl on a terminal where somebody says that.
asked()
{
    wanted=$1
    answer=$2
    shift 2
    command -v python3 >none || exit 77
    python3 -c 'import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
said = b""
answered = False
try:
    while True:
        part = os.read(terminal, 4096)
        if not part:
            break
        said += part
        if not answered and b"[y/N]" in said:
            os.write(terminal, sys.argv[1].encode())
            answered = True
except OSError:
    pass
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))' "$answer" "$duectl" "$@" >said
    got=$?
    [ "$got" = "$wanted" ] || fail "duectl $*, asked: $got, not $wanted"
}

# jobs STATE: how many there are.
jobs()
{
    "$duectl" ls --state "$1" "$store" | wc -l
}

# put: 2 dead ones, and 8 in all.
put()
{
    rm -f a.db*
    redis flushall >none
    run 0 import "$store" <"$all"
}

for store in a.db "$url"; do
    put
    run 0 dead ls "$store"
    [ "$(wc -l <out)" = 2 ] || fail "not 2 dead"
    has out '^ff000000000100000000000000040000  2020-01-02T00:00:00.* letter$'
    run 0 dead ls --json "$store"
    fits out listed 2
    run 0 dead ls --topic none "$store"
    [ ! -s out ] || fail "dead of no topic"

    # Without a terminal nothing is done; on one it is as somebody says.
    run 2 dead drop --all "$store"
    has err '2 dead jobs of all topics will be gone for good$'
    has err 'needs --yes$'
    run 2 clear "$store" </dev/null
    has err '6 waiting jobs of all topics'
    for answer in n '' yup; do
        asked 1 "$answer
" clear "$store"
        grep -q 'nothing was done' said || fail "it was not said that nothing was done"
    done
    [ "$(jobs dead)" = 2 ] || fail "some were dropped"
    asked 0 'y
' dead drop --all "$store"
    grep -q '^dropped 2' said || fail "it was not said that 2 were dropped"
    [ "$(jobs dead)" = 0 ] || fail "some were not dropped"
    run 0 clear --topic none --yes "$store"
    echo 'cleared 0' | same out
    run 0 clear --topic 'post/ö' --yes --json "$store"
    fits out answers:cleared 1
    has_not out '"cleared":0'
    run 0 clear --yes "$store"
    run 0 ls "$store"
    [ ! -s out ] || fail "some were not cleared"

    # Those that are named, and nothing else.
    put
    waits=ff000000000100000000000000010000
    letter=ff000000000100000000000000040000
    run 1 dead drop --json "$store" $waits $letter
    fits out answers:dropped 3
    has out "^{\"id\":\"$waits\",\"result\":\"DUE_ENOENT\"}$"
    has out "^{\"id\":\"$letter\",\"result\":\"dropped\"}$"
    run 0 show "$store" $waits
    run 0 dead kick --all --topic none "$store"
    echo 'kicked 0' | same out
    run 0 dead kick --all --json "$store"
    echo '{"kicked":1}' | same out
    [ "$(jobs dead)" = 0 ] || fail "some were not kicked"
    run 2 dead kick --all "$store" $waits
    run 2 dead kick --topic a "$store" $waits
    run 2 dead kick "$store"
    run 2 dead drop "$store" --yes
    unread 3 clear --yes "$store"
done
run 0 dead --help
run 2 dead
run 2 dead rise
run 3 clear --yes no.db
run 1 clear --yes --queue no "$url"
[ ! -e no.db ] || fail "a file was made"
run 3 clear --yes unix:///no/such/socket
run 3 dead ls unix:///no/such/socket
finish
