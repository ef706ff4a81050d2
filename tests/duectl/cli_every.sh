#!/bin/sh
# Every command in every case that all have in common: each of them is in the table below.
. "$(dirname "$0")/cli_lib"
serve
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1
secret=canary-2c9e

# Commands that have a store, which stands for @ here.  None but the last three changes what is
# stored, so all can be tried on one, in this order.
cat >table <<'END'
restore @
restore --list @
restore --json @
restore --json --list @
verify @
verify --json @
verify --repair @
doctor @
doctor --json @
ls @
ls --json @
show @ ff000000000100000000000000010000
show --json @ ff000000000100000000000000010000
show --data @ ff000000000100000000000000010000
cancel @ ff0000000000ff000000000000990000
cancel --json @ ff0000000000ff000000000000990000
reschedule @ ff0000000000ff000000000000990000 1h
kick @ ff0000000000ff000000000000990000
promote @ ff0000000000ff000000000000990000
promote --json @ ff0000000000ff000000000000990000
dead ls @
dead ls --json @
dead kick --topic none --all @
dead drop --topic none --all --yes @
dead kick @ ff0000000000ff000000000000990000
dead drop @ ff0000000000ff000000000000990000
clear --topic none --yes @
pause --topic none @
resume --topic none @
stats @
stats --json @
metrics @
metrics --listen 0 @
evict --yes @ 5
ps @
top --count 1 @
top --count 1 --json @
web @
export @
import --again @
import --again --json @
push @
run --store @
work --exec cat --store @
END
cat >storeless <<'END'
check
bench
completion bash
END
run 0 --help
sed -n 's/^usage: *//; s/^ *duectl \([a-z][a-z]*\).*/\1/p' out | sort -u >commands
cut -d ' ' -f 1 table storeless | sort -u | same commands

# of STORE LINE: the words of that line of the table, in $words; what it reads is in $in.  False:
# this one says nothing there, or something else does it.
of()
{
    words=$(printf '%s\n' "$2" | sed "s|@|$1|")
    in=/dev/null
    case $2 in
    import*) in=$all ;;
    push*) in=tea.due ;;
    run*) in=now.due ;;
    esac
    case $2:$1 in
    ps*) return 1 ;; # nobody has it open: cli_shared.sh
    evict*:*.db) return 1 ;; # a file is not shared, which is said on standard error
    metrics*listen*) return 1 ;; # where it listens is said on standard error
    work*) return 1 ;; # the output is the commands' own
    esac
}
echo '@2030-01-01 tea' >tea.due
echo '0s tea' >now.due

# An output that has no room is said; one that nobody reads is not.  Both end with 3.
for store in a.db "$url"; do
    run 0 import "$store" <"$all"
    while read -r line; do
        of "$store" "$line" || continue
        timeout 30 "$duectl" $words <$in >/dev/full 2>err
        got=$?
        [ "$got" = 3 ] || fail "$words, to a full disk: status $got"
        has err '^duectl: standard output: '
        [ "$(grep -c 'standard output' err)" = 1 ] || fail "$words: said twice"
        unread 3 $words <$in 2>err
        has_not err 'standard output'
    done <table
done

# Words that are none, and no store.
sed 's/ --store @//' table >words.table
while read -r line; do
    for wrong in '--no-such-option' '--queue'; do
        run 2 ${line%%@*} $wrong </dev/null
        [ ! -s out ] || fail "$line $wrong: standard output is not empty"
        has err '^duectl: '
    done
    case $line in
    run*) ;; # without a store it is a plain one
    *) run 2 $(printf '%s\n' "$line" | sed 's/ @//') </dev/null ;;
    esac
done <words.table

# No server; one that knows no such password; a file that is no store, or is not there.
redis acl setuser some on ">$secret" '~*' '&*' +@all >none
echo 'This is a text and no database, and long enough that it might have the head of one.' >text.db
cp text.db text.was
mkdir folder.db
# tried N WORD...: run duectl, beside others.
tried()
{
    n=$1
    shift
    timeout 100 "$duectl" "$@" <"$in" >"out.$n" 2>"err.$n"
    echo $? >"got.$n"
}
n=0
while read -r line; do
    nobody=unix://$dir/nobody
    case $line in
    run* | work*) nobody= ;;         # those wait for it
    *' --listen'*) continue ;; # so does this, for any store: cli_metrics_listen.sh
    esac
    for store in $nobody "unix://some:wrong@$REDIS_SOCKET" text.db folder.db no/such.db; do
        n=$((n + 1))
        of "$store" "$line"
        wanted=3
        case $line:$store in
        evict*.db) wanted=1 ;; # a file is not shared
        run*:* | work*:*) ;;
        *:text.db) wanted=1 ;; # there is no such queue
        esac
        echo "$wanted $words" >"case.$n"
        tried $n $words &
    done
    [ $((n % 40)) -lt 35 ] || wait
done <table
wait
while [ $n -gt 0 ]; do
    read -r wanted words <"case.$n"
    [ "$(cat "got.$n")" = "$wanted" ] || fail "$words: status $(cat "got.$n"), not $wanted"
    has "err.$n" '^duectl: '
    has_not "err.$n" wrong
    n=$((n - 1))
done
cmp -s text.db text.was || fail "a file of others has changed"

# Bytes that mean nothing, as what is read.
head -c 200000 /dev/urandom >noise
for words in "push a.db" "import --again a.db" "cancel a.db -" "show a.db -" run check; do
    timeout 60 "$duectl" $words <noise >out 2>err
    [ $? = 1 ] || fail "$words, of noise: not 1"
    [ -s err ] || fail "$words, of noise: nothing is said"
done
timeout 60 "$duectl" run --replay <noise >out 2>err || fail "a log of noise: status $?"
[ "$(wc -c <out)" -ge 199000 ] || fail "a log of noise: $(wc -c <out) bytes"
finish
