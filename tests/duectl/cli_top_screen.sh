#!/bin/sh
# `duectl top` on a terminal, which is one of tmux: it is drawn, moves, fits, and gives it back.
. "$(dirname "$0")/cli_lib"
shower=$(dirname "$duectl")/tests/show_figures
[ -x "$shower" ] || { echo "no $shower"; exit 77; }
command -v tmux >/dev/null || { echo "no tmux"; exit 77; }
cd "$dir" || exit 1
unset TMUX NO_COLOR
LC_ALL=C.UTF-8
TERM=screen
export LC_ALL TERM
screen="tmux -S $dir/tmux.socket"
trap '$screen kill-server 2>/dev/null
      for pid in $pids; do kill -9 "$pid" 2>/dev/null; done; rm -rf "$dir"' EXIT

mkfifo in answers
"$shower" figures orders <in >answers 2>said &
shown=$!
pids=$shown
exec 5>in 6<answers
read -r answer <&6

# tell WORD...: the program does that, and the file says so.
tell()
{
    echo "$*" >&5
    read -r answer <&6 && [ "$answer" = done ] || fail "the program: $(cat said)"
}

keys()
{
    $screen send-keys -t view "$@"
}

look()
{
    $screen capture-pane -p -t view >page 2>>said || fail "no picture: $(tail -n 1 said)"
}

# until_shows PATTERN, until_not PATTERN: some line of the screen matches, or none any more.
until_shows()
{
    for i in $(seq 500); do
        look
        grep -q -e "$1" page && return
        sleep 0.02
    done
    has page "$1"
}

until_not()
{
    for i in $(seq 500); do
        look
        grep -q -e "$1" page || return
        sleep 0.02
    done
    has_not page "$1"
}

# fits COLUMNS ROWS: all of it is on the screen, the title on top and no line goes on in the next;
# and it is as large as that, going by its last line: PATTERN.
fits()
{
    for i in $(seq 500); do
        look
        awk -v most="$1" 'length($0) > most { exit 1 }' page &&
            [ "$(head -n 1 page | cut -c 1-10)" = 'duectl top' ] &&
            [ "$(grep -c 'duectl top' page)" = 1 ] && grep -q -e "$3" page && return
        sleep 0.02
    done
    fail "it does not fit into $1 columns and $2 rows"
    sed 's/^/    /' page >&2
}

cat >start.sh <<END
PS1='prompt> '
cd '$dir'
duectl='$duectl'
END
tell put 30 mail
tell turn 2001
tell ack 20
$screen -f /dev/null new-session -d -s view -x 100 -y 32 "ENV=$dir/start.sh sh -i" 2>said || {
    echo "tmux does not start: $(cat said)"
    exit 77
}
until_shows '^prompt>'
keys 'echo before; stty -g >as_it_was' Enter
until_shows '^before$'
until_shows '^prompt> *$'

# It is drawn, on a screen of its own, and follows.
keys '"$duectl" top --figures figures --every 200ms; echo "status $?"; stty -g >afterwards' Enter
until_shows '^duectl top  orders  pid '"$shown"
until_not '^before$'
until_shows '^jobs  *waiting 10   ready 10   leased 0   dead 0   overdue 2\.0 us *$'
until_shows '^late  *p50 2\.0 us  *p90 2\.0 us  *p99 2\.0 us  *max 2\.0 us  *of 20$'
until_shows '^ *up to 10 us  *20 ########################################$'
until_shows '^mail  *0\.0  *0\.0  *0\.0  *10  *10  *0  *0  2\.0 us$'
[ "$($screen display-message -p -t view '#{alternate_on}#{cursor_flag}')" = 10 ] ||
    fail "no screen of its own, or a cursor on it"
tell put 1000
until_shows '^jobs  *waiting 1010 '

# A rate is shown until the next picture, which a busy machine may not leave time to see.
waiting=1010
for i in $(seq 100); do
    tell put 100
    waiting=$((waiting + 100))
    for k in $(seq 10); do
        look
        grep -q '^a second  *enqueued [1-9]' page && break 2
        sleep 0.02
    done
done
has page '^a second  *enqueued [1-9]'
tell turn 1
tell bury 2
until_shows "^jobs  *waiting $((waiting - 2)) .* dead 2 "
fits 100 32 '^mail .*us$'
tell serve 3
until_shows '^cooks  *3 '
until_shows '^jobs  *waiting 0 '

# What is typed besides is not shown, and does nothing.
keys x y z
until_shows '^duectl top'
has_not page 'xyz'

# It fits into what there is, and is drawn anew when that changes.
while read -r columns rows last; do
    $screen resize-window -t view -x "$columns" -y "$rows" </dev/null
    fits "$columns" "$rows" "$last"
done <<'END'
60 12 ^mail 
40 5 ^late  *p50
100 8 ^and 2 more
20 2 ^duectl top  orders
130 40 ^mail  .* -$
80 24 ^mail  .* -$
END

# Ctrl-Z gives the terminal back for a while.
keys C-z
until_shows '^prompt> *$'
until_shows '^before$'
[ "$($screen display-message -p -t view '#{alternate_on}#{cursor_flag}')" = 01 ] ||
    fail "stopped: the screen is not given back"
keys 'fg' Enter
until_shows '^duectl top  orders'

# back STATUS: it has ended so, and the terminal is as it was.
back()
{
    until_shows '^prompt> *$'
    keys 'echo "status $?"; stty -g >afterwards' Enter
    until_shows "^status $1\$"
    until_shows '^prompt> *$'
    has page '^before$'
    has_not page '^duectl top '
    for i in $(seq 100); do
        cmp -s as_it_was afterwards && break
        sleep 0.02
    done
    cmp -s as_it_was afterwards || fail "status $1: the terminal is not as it was"
    [ "$($screen display-message -p -t view '#{alternate_on}#{cursor_flag}')" = 01 ] ||
        fail "status $1: the screen is not given back"
    rm -f afterwards
}

keys q
back 0

# again FORM: it is shown once more.
again()
{
    keys "clear; echo before; sh -c 'echo \$\$ >viewer; exec \"\$0\" top $1' \"\$duectl\"" Enter
    until_shows '^duectl top  orders'
}
again '--figures figures'
keys C-c
back 130
again '--figures figures --every 10m' # only the window's change draws it anew
$screen resize-window -t view -x 100 -y 8
fits 100 8 '^and 2 more'
$screen resize-window -t view -x 80 -y 24
fits 80 24 '^mail  .* -$'
keys q
back 0
again "--pid $shown --count 2 --every 300ms"
back 0
again "--figures figures --every 100ms"
kill -TERM "$(cat viewer)"
back 143

# What is said while the page is there is said when it is gone.
again "--figures figures --every 100ms"
kill -9 "$shown"
back 1
until_shows "process $shown, which wrote it, has ended"

# A terminal that cannot be drawn on has plain lines.
keys 'clear; TERM=dumb "$duectl" top --figures in --count 1; echo "status $?"' Enter
until_shows '^status 1$'
has page 'in: this is no file of figures$'
exec 5>&- 6<&-
finish
