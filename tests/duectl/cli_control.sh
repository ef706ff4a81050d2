#!/bin/sh
# A queue that is in use is looked at and changed through the control socket of its owner.
. "$(dirname "$0")/cli_lib"
serve
cd "$dir" || exit 1
command -v python3 >none || exit 77

# say [each]: send standard input to the socket, or each line of it apart, and print what comes
# back.
say()
{
    python3 -c 'import socket, sys
def say(request):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect("c")
    try:
        s.sendall(request)
        s.shutdown(socket.SHUT_WR)
        part = s.recv(65536)
        while part:
            sys.stdout.buffer.write(part)
            part = s.recv(65536)
    except (BrokenPipeError, ConnectionResetError):
        pass
all = sys.stdin.buffer.read()
for request in all.splitlines(True) if len(sys.argv) > 1 else [all]:
    say(request)' "$@"
}

cat >bad <<'EOF'

{}
x
[
{"verb":"stats"
{"verb":"stats"}x
{"verb":"stats","verb":"stats"}
{"verb":"none"}
{"verb":1}
{"verb":"cancel"}
{"verb":"stats","ids":[]}
{"verb":"cancel","ids":["ff"]}
{"verb":"cancel","ids":[1]}
{"verb":"cancel","ids":["ff0000000000ff000000000000990000",]}
{"verb":"pause","at_ns":1}
{"verb":"reschedule","ids":[]}
{"verb":"reschedule","ids":[],"at_ns":-1}
{"verb":"clear","topic":"\u0000"}
{"verb":"clear","topic":{"base64":"!"}}
EOF
{
    printf '{"verb":"cancel","ids":['
    seq 257 | sed 's/.*/"ff0000000000ff000000000000990000"/' | paste -sd, | tr -d '\n'
    echo ']}'
    printf '{"verb":"clear","topic":"%0256d"}\n' 1
    head -c 5000 /dev/urandom | tr -d '\r\n\013\014\034\035\036\205'
    echo
} >>bad

for store in a.db "$url"; do
    seq 1 6 | sed 's/.*/1h job &/' >in.txt
    run 0 push "$store" in.txt
    cp out ids
    run 0 push --topic mail "$store" in.txt
    printf '0s go\n@2026-01-01 bad\n' >in.txt
    run 0 push "$store" in.txt
    start work --store "$store" --control c --attempts 1 --exec 'read x; echo $x; [ "$x" != bad ]'
    line bad
    line go
    [ "$(stat -c %a c)" = 600 ] || fail "others can use the socket: $(stat -c %a c)"

    # What it is asked is done, by the process that owns the queue.
    run 3 cancel "$store" "$(head -n 1 ids)"
    run 1 cancel --json --control c "$(head -n 1 ids)" ff0000000000ff000000000000990000
    fits out answers:cancelled 3
    has out "\"$(head -n 1 ids)\",\"result\":\"cancelled\""
    has out '"result":"DUE_ENOENT"'
    run 1 show "$store" "$(head -n 1 ids)"
    run 0 reschedule --control c "$(sed -n 2p ids)" 0s
    line 'job 2'
    run 0 clear --yes --control c --topic mail
    echo 'cleared 6' | same out
    run 2 clear --control c
    has err 'needs --yes'

    # Paused, it hands out nothing; what fails is dead, and can be dropped and kicked.
    run 0 pause --control c
    run 0 reschedule --control c "$(sed -n 3p ids)" 0s
    run 0 stats --json --control c
    fits out control 1
    has out "\"pid\":$pid,\"store\":\"DUE_OK\",\"waiting\":4,\"ready\":1,"
    run 0 stats --control c
    has out '^waiting    4$'
    run 0 resume --control c
    line 'job 3'
    run 0 metrics --control c
    has out '^due_jobs{queue="duectl",state="delayed"} 3$'
    has out '^due_jobs_delivered_total{queue="duectl"} [1-9]'
    run 0 dead kick --all --control c
    echo 'kicked 1' | same out
    line bad
    until "$duectl" stats --json --control c | grep -q '"dead":1,'; do sleep 0.01; done
    run 2 dead drop --all --control c
    run 0 dead drop --all --yes --control c
    echo 'dropped 1' | same out
    run 1 dead drop --control c "$(sed -n 4p ids)"
    run 2 stats --control c "$store"
    run 2 stats --control c --topic mail
    run 2 pause
    run 3 pause "$store"
    run 2 pause --control c "$store"
    run 1 pause --control c --queue other
    has err 'no such queue'
    run 1 cancel --control c --queue other "$(sed -n 4p ids)"
    run 0 pause --control c --queue duectl
    run 0 resume --control c --queue duectl

    # A second one has its own socket, or none.
    run 3 work --store b.db --control c --exec cat
    has err '^duectl: --control c: Address already in use; another'
    run 3 work --store b.db --control no/such/c --exec cat
    run 3 work --store b.db --control "$(printf '%0200d' 1)" --exec cat
    run 2 run --control c /dev/null

    # Whatever comes in: it is answered, or the connection ends; and the next one is served.
    say each <bad >out
    n=$(wc -l <bad)
    [ "$(grep -c '^{"fault":"' out)" = "$n" ] || fail "not $n faults"
    [ "$(grep -c '^{"end":"DUE_EINVAL"}$' out)" = "$n" ] || fail "not $n ends"
    has out '"fault":"more than 256 ids"'
    printf '{"verb":"stats"}' | say >out
    [ ! -s out ] || fail "an answer to half a request"
    head -c 70000 /dev/zero | tr '\0' x | say >out
    has out '^{"end":"DUE_ELIMIT"}$'
    printf '{"verb":"cancel","ids":["%s"]}\n' "$(sed -n 4p ids)" | say >out
    has out '"result":"DUE_OK"}$'
    run 0 stats --control c

    kill -TERM "$pid"
    ended 143
    [ ! -e c ] || fail "the socket stays"
    run 3 cancel --control c "$(head -n 1 ids)"
done

# What a killed one has left behind is taken over; another file is not.
start work --store b.db --control c --exec cat
until [ -e c ]; do sleep 0.01; done
until "$duectl" stats --control c >none 2>&1; do sleep 0.01; done
kill -KILL "$pid"
wait "$pid" 2>none
exec 4<&-
[ -e c ] || fail "there is nothing to take over"
run 3 stats --control c
has err 'its owner is gone'
mkfifo in
start run --store b.db --control c in
exec 5>in
until "$duectl" stats --control c >none 2>&1; do sleep 0.01; done
echo '1h first' >&5
until "$duectl" stats --json --control c | grep -q '"waiting":1,'; do sleep 0.01; done
run 0 metrics --control c
has out '^due_lateness_seconds_count{queue="duectl"} 0$'
run 0 clear --yes --control c
exec 5>&-
ended 0
echo here >file
run 3 work --store b.db --control file --exec cat
has file here
finish
