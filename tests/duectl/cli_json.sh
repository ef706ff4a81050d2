#!/bin/sh
# What restore, verify, doctor, check and import find is lines of JSON with --json, of a file and of
# a server alike; every command that prints something has that, or says nothing but such lines.
. "$(dirname "$0")/cli_lib"
serve
all=$(cd "$(dirname "$0")" && pwd)/export.jsonl
cd "$dir" || exit 1
command -v jq >none || exit 77
echo '1h tea' | "$duectl" push good.db >none 2>&1 || exit 77 # built without SQLite
rm -f good.db*

# last FILTER: what jq says of the last line.
last()
{
    tail -n 1 out | jq -e "$1" >none || fail "the last line is not so: $1: $(tail -n 1 out)"
}

# ---- Of a schedule
printf '1s tea\nsoon tea\n2s tea\n5 \001tea\n' >s.due
run 1 check --json s.due
fits out checked 3
has out '^{"line":2,"column":1,"text":"a line begins'
last '.lines == 4 and .jobs == 2 and .faults == 2'
has err '^s.due:2:1: '
run 0 check --json /dev/null
fits out checked 1
unread 3 check --json s.due

for store in a.db "$url"; do
    # ---- import
    run 1 import --json "$store" </dev/null
    fits out imported 2
    last '.complete == false and (has("jobs") | not)'
    run 0 import --json "$store" <"$all"
    fits out imported 1
    last '.complete and .jobs > 0 and .before == 0'
    jobs=$(jq -s '.[-1].jobs' out)
    run 1 import --json "$store" <"$all"
    fits out imported 1
    last '.complete == false'
    run 0 import --json --again "$store" <"$all"
    last ".complete and .jobs == 0 and .before == $jobs"
    sed 's/"deadline":"[^"]*"/"deadline":"soon"/' "$all" >bad
    run 1 import --json --check <bad
    fits out imported
    has out '^{"line":2,"column":[0-9]*,"text":"'
    has err '^-:2:[0-9]*: '

    # ---- restore
    run 0 restore --json "$store"
    fits out restored
    head -n 1 out | jq -e ".jobs == $jobs and (.shared | not)" >none || fail "$(head -n 1 out)"
    [ "$(jq -s 'map(select(.first) | .jobs) | add' out)" = "$jobs" ] || fail "not all jobs"
    [ "$(jq -s 'map(select(.state)) | length' out)" = 1 ] || fail "not one line of the dead"
    run 0 restore --json --list "$store"
    fits out restored_list "$jobs"
    jq -es 'any(.died and .cause)' out >none || fail "nothing has died"
    jq -r .id out | sort >ids
    run 0 ls --json "$store"
    jq -r .id out | sort | same ids
    run 0 restore --list "$store"
    cut -d ' ' -f 1 out | grep '^[0-9a-f]\{32\}$' | sort | same ids

    # ---- verify
    run 0 verify --json "$store"
    fits out verified 1
    last ".whole and .records == $jobs and .wrong == 0"

    # ---- Nobody reads it, or there is nothing to read.
    for verb in restore verify; do
        unread 3 $verb --json "$store"
        timeout 10 "$duectl" $verb --json "$store" >/dev/full 2>none
        [ $? = 3 ] || fail "$verb --json, to a full disk"
    done
done

# ---- doctor
run 0 doctor --json a.db
fits out doctored 6
has out '^{"check":"owner","result":"ok","text":"nobody"}$'
last '.changes == 0'
run 1 doctor --json "$url"
fits out doctored
[ "$(jq -s 'map(select(.result == "change")) | length' out)" = "$(jq -s '.[-1].changes' out)" ] ||
    fail "not so many changes"
jq -es 'any(.check == "persistence" and .result == "note")' out >none ||
    fail "what belongs to persistence does not name it"
unread 3 doctor --json "$url"

# ---- What is wrong: each finding, with the name of what it is about
python3 -c 'import sqlite3
db = sqlite3.connect("a.db")
db.execute("UPDATE job SET record = ? WHERE id = (SELECT min(id) FROM job)", (b"x",))
db.commit()'
run 1 verify --json a.db
fits out verified
has out '^{"wrong":"jobs","count":1,"text":"jobs whose record is damaged"}$'
last '(.whole | not) and .repaired == 0'
run 0 verify --json --repair a.db
last '.whole and .wrong == .repaired and .wrong > 0'
# More than are told to people one by one.
redis --raw hkeys 'due:{duectl}:topics' >topics
for i in $(seq 10 40); do
    redis hset 'due:{duectl}:j' "x$i" rubbish >none
    printf 'hset due:{duectl}:j "\\xff'
    printf '\\x00%.0s' 1 2 3 4 5 6 7 8 9 10 11 12
    printf '\\x%s" rubbish\n' $i
done >commands
redis <commands >none
run 1 verify "$url"
has out '^wrong   and more$'
[ "$(grep -c '^wrong   [0-9a-f]\{32\}  ' out)" = 20 ] || fail "not twenty findings"
run 1 verify --json "$url"
fits out verified
[ "$(jq -s 'map(select(.wrong == "job")) | length' out)" = 31 ] || fail "not every finding"
jq -es 'any(.wrong == "names" and (.text | startswith("31 ")))' out >none || fail "no names"
last '(.whole | not) and .wrong == 62'

# ---- Every command has it, if it prints something that is not of a form of its own.
run 0 --help
sed -n 's/^usage: *//; s/^ *duectl \([a-z][a-z ]*[a-z]\) [[b].*/\1/p' out >names
while read -r name; do
    case $name in
    run | work | metrics | web | export | bench | completion | dead) continue ;;
    esac
    # shellcheck disable=SC2086
    "$duectl" $name --help >help 2>err </dev/null || fail "$name --help"
    has help '^  --json '
done <names
[ "$(wc -l <names)" -gt 20 ] || fail "not all commands: $(cat names)"
finish
