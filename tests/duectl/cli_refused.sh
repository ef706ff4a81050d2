#!/bin/sh
# A file that holds no queue is refused by each verb, whatever it is, and stays as it was; nothing
# is made beside it.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1
command -v python3 >none || exit 77
echo '1h tea' | "$duectl" push good.db >none 2>&1 || exit 77 # built without SQLite
rm -f good.db*

id=ff000000000100000000000000010000
mkdir store folder
python3 -c 'import sqlite3
db = sqlite3.connect("store/other.db")
db.execute("CREATE TABLE diary (day TEXT)")
db.commit()'
: >store/empty.db
echo 'dear diary' >store/text.db
echo 'dear diary' >store/long.db
head -c 100000 /dev/urandom >>store/long.db
ls -l --time-style=full-iso store >before
cat store/* | cksum >sum

# refused STATUS FILE ARG...
refused()
{
    wanted=$1
    file=$2
    shift 2
    run "$wanted" "$@"
    [ -s err ] || fail "$*: nothing is said"
    ls -l --time-style=full-iso store | diff before - >changed || fail "$*: $(cat changed)"
    cat store/* | cksum | cmp -s sum - || fail "$*: another content"
    [ -z "$(ls folder)" ] || fail "$*: made $(ls folder)"
}

# Those of which the file is the queue that is to be changed, or read.  What makes a queue makes one
# of an empty file, and of what is not there.
for file in store/empty.db store/text.db store/long.db store/other.db; do
    refused 1 $file cancel $file $id
    refused 1 $file kick $file $id
    refused 1 $file reschedule $file $id 1h
    refused 1 $file dead kick $file $id
    refused 1 $file dead drop $file $id
    refused 1 $file dead kick --all $file
    refused 1 $file dead drop --all --yes $file
    refused 1 $file clear --yes $file
    refused 1 $file pause $file
    refused 1 $file resume --topic mail $file
    refused 1 $file export $file
    [ $file = store/empty.db ] || refused 1 $file push $file <"$dir/none"
    for verb in ls "show $id" stats metrics verify restore doctor; do
        refused 1 $file $verb $file
    done
    refused 1 $file ps $file
    refused 1 $file evict --yes $file 5
    refused 1 $file verify --repair $file
done

none=folder/none.db
for verb in ls ps stats metrics verify restore doctor 'verify --repair' 'clear --yes' pause resume \
    export 'dead ls' 'dead kick --all' 'dead drop --all --yes'; do
    refused 3 $none $verb $none
done
for verb in show cancel kick 'dead kick' 'dead drop'; do
    refused 3 $none $verb $none $id
done
refused 3 $none reschedule $none $id 1h
refused 3 folder clear --yes folder

# A queue of another name is none of ours either, and stays what it is.
echo '1h tea' >s.due
run 0 push --queue mail good.db s.due
run 1 cancel --queue letters good.db $id
has err 'holds the queue mail, not letters'
run 1 clear --yes good.db
run 1 export good.db
run 0 ls --queue mail good.db
has out ' tea$'
finish
