#!/bin/sh
# metrics_http.sh PROGRAM - fetch the page that metrics_http serves, as Prometheus would: its test.
command -v python3 >/dev/null || { echo "there is no python3 to fetch it with"; exit 77; }

dir=$(mktemp -d) || exit 1
"$1" 0 >"$dir/url" &
pid=$!
trap 'kill -9 $pid; rm -rf "$dir"' EXIT
tries=0
until [ -s "$dir/url" ]; do
    tries=$((tries + 1))
    [ $tries -lt 500 ] || { echo "it does not say where it is"; exit 1; }
    sleep 0.02
done

python3 - "$(cat "$dir/url")" <<'END'
import socket, sys, urllib.parse, urllib.request

url = sys.argv[1]
where = urllib.parse.urlsplit(url)
for times in range(3):
    socket.create_connection((where.hostname, where.port)).close()  # one that says nothing
    with urllib.request.urlopen(url, timeout=20) as page:
        type = page.headers["Content-Type"]
        lines = page.read().decode().splitlines()
    assert type == "text/plain; version=0.0.4; charset=utf-8", type
    for line in ('due_jobs{queue="orders",state="delayed"} 1',
                 'due_jobs_enqueued_total{queue="orders"} 1'):
        assert line in lines, line
print(len(lines), "lines")
END
