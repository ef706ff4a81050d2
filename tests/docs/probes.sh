#!/bin/sh
# probes.sh SOURCE BUILD - the probes that the library has, by the notes in its file, are those of
# docs/metrics.md, each with as many arguments; monitoring/steps.bt asks for those alone, and uses
# no argument that is not there.
set -eu
export LC_ALL=C
source=$1
build=$2
grep -q '^DUE_HAVE_SDT:INTERNAL=1$' "$build/CMakeCache.txt" || {
    echo "built without <sys/sdt.h>"
    exit 77
}
! grep -q '^DUE_USDT:BOOL=OFF$' "$build/CMakeCache.txt" || { echo "left out"; exit 77; }
command -v readelf >/dev/null || { echo "there is no readelf"; exit 77; }
library=$(find "$build/src" -name 'libdue.so.*.*' -type f | head -n 1)
[ -n "$library" ] || { echo "there is no shared library"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each probe, with the number of its arguments: "8@%rbx -8@48(%r13)" has two.
readelf -n "$library" | awk '
    $1 == "Provider:" { provider = $2 }
    $1 == "Name:" { name = $2 }
    $1 == "Arguments:" && provider == "libdue" { print name, NF - 1 }' | sort -u >"$work/built"
sed -n 's/^| `libdue:\([a-z]*\)` | \(.*\) | .*/\1 \2/p' "$source/docs/metrics.md" |
    awk '{ print $1, NF - 1 }' | sort >"$work/told"
[ -s "$work/built" ] || { echo "the library has no probes"; exit 1; }
diff "$work/told" "$work/built" || { echo "the page and the library have others"; exit 1; }

awk -v of="$work/told" '
    BEGIN { while ((getline line < of) > 0) { split(line, w, " "); most[w[1]] = w[2] } }
    /^usdt:/ {
        sub(/,$/, "")
        name = $0
        sub(/.*:libdue:/, "", name)
        if (!(name in most)) { print "steps.bt: no probe " name; bad = 1 }
        seen[name] = at[name] = 1
    }
    { rest = $0
      while (match(rest, /arg[0-9]/)) {
          n = substr(rest, RSTART + 3, 1)
          for (name in at)
              if (n + 0 >= most[name] + 0) { print "steps.bt: " name " has no arg" n; bad = 1 }
          rest = substr(rest, RSTART + 4)
      } }
    /^}/ { delete at }
    END { for (name in most) if (!(name in seen)) { print "steps.bt: not " name; bad = 1 }
          exit bad }' "$source/docs/monitoring/steps.bt"
# Probes are looked for in the file that a script names: this build's.
if command -v bpftrace >/dev/null; then
    sed "s|/usr/lib/x86_64-linux-gnu/libdue.so.0|$library|" "$source/docs/monitoring/steps.bt" \
        >"$work/steps.bt"
    bpftrace -d "$work/steps.bt" 2>&1 | grep -q 'AST after: parser' || {
        bpftrace -d "$work/steps.bt"
        exit 1
    }
fi
wc -l <"$work/built" | sed 's/$/ probes/'
