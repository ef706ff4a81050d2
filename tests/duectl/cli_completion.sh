#!/bin/sh
# The words that shells complete are those that the commands take.
. "$(dirname "$0")/cli_lib"
cd "$dir" || exit 1

for shell in bash zsh fish; do
    run 0 completion $shell
    [ -s out ] || fail "no script for $shell"
    cp out duectl.$shell
    timeout 10 "$duectl" completion $shell >/dev/full
    [ $? = 3 ] || fail "a script for $shell, to a full disk"
done
run 2 completion
run 2 completion tcsh
run 2 completion bash zsh
run 0 completion --help
has out '^usage: duectl completion bash'

# Each command is there; each option is in its help, and is one that is taken.
run 0 --help
sed -n 's/^usage: *//; s/^ *duectl \([a-z][a-z]*\).*/\1/p' out | sort -u >commands
for command in push ls show cancel reschedule kick dead clear stats ps evict top verify run work \
    completion; do
    has commands "^$command$"
done

command -v bash >none || exit 77
cat >ask.bash <<'EOF'
. ./duectl.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
_duectl
printf '%s\n' "${COMPREPLY[@]}"
EOF

# words WORD...: what bash completes the last of them to.
words()
{
    bash ask.bash duectl "$@" >got 2>err || fail "bash: $*"
    [ ! -s err ] || fail "bash says: $(cat err)"
}

words ''
grep -v '^--' got | sort -u | same commands
words res
printf 'restore\nresume\n' >none
sort got | grep -c '^rest' >none || fail "not what begins with res"
words dead ''
printf 'kick\nls\ndrop\n' | sort >wanted.words
grep -v '^--' got | sort | same wanted.words
words ls --state ''
printf 'waiting\nreserved\ndead\n' | same got
words work --require e
echo everysec | same got
words completion f
echo fish | same got
: >'a file.db'
words ls 'a f'
echo 'a file.db' | same got
words push --store 'a f'
echo 'a file.db' | same got

for command in $(grep -v dead commands) 'dead ls' 'dead kick' 'dead drop'; do
    [ "$command" != bench ] || continue
    words $command --
    run 0 $command --help
    cp out help
    while read -r option; do
        [ "$option" != --help ] || continue
        grep -q -e "^  $option " help || fail "$command --help does not name $option"
        timeout 10 "$duectl" $command "$option" >none 2>err </dev/null
        has_not err 'no such option'
    done <got
    has got '^--help$'
    for option in $(sed -n 's/^  \(--[a-z-]*\) .*/\1/p' help); do
        has got "^$option$"
    done
done

# The other shells read theirs.
if command -v zsh >none; then
    zsh -n duectl.zsh 2>err || fail "zsh: $(cat err)"
    zsh -fc 'autoload -U compinit; compinit -D -u; . ./duectl.zsh; whence -w _duectl' >got 2>&1
    has got 'function'
fi
if command -v fish >none; then
    HOME=$dir fish --no-config -c 'source duectl.fish
        complete -C "duectl dead "
        complete -C "duectl ls --state "
        complete -C "duectl ls --top"' >got 2>err || fail "fish: $(cat err)"
    has got '^kick'
    has got '^reserved'
    has got '^--topic'
    [ ! -s err ] || fail "fish says: $(cat err)"
fi
finish
