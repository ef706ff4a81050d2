"""metrics_listen DUECTL URL SECRET - `duectl metrics --listen`, in a new directory.

URL is a Redis whose password is SECRET, and is told another one here.
"""
import atexit
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

import web_lab
from web_lab import check, run

DUECTL, REDIS, SECRET = sys.argv[1:4]
SOCKET = REDIS.split("@")[1]
PATH = "/metrics"


class Metrics(web_lab.Web):
    """Started with these arguments; served at self.url."""

    def __init__(self, *arguments, listen="0", environment=None):
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [DUECTL, "metrics", "--listen", listen, *arguments], stdout=subprocess.DEVNULL,
            stderr=self.said, stdin=subprocess.DEVNULL,
            env=dict(os.environ, **(environment or {})))
        atexit.register(self.process.kill)
        self.url = ""
        end = time.monotonic() + 60
        while not self.url and self.process.poll() is None and time.monotonic() < end:
            found = re.search(rb"metrics at (http://(.*):(\d+)/metrics)\n", self.errors())
            if found:
                self.url, self.address = found[1].decode(), found[2].decode()
                self.port = int(found[3])
                self.host = f"{self.address}:{self.port}"
            else:
                time.sleep(0.01)

    def connect(self):
        return socket.create_connection((self.address.strip("[]"), self.port), timeout=100)

    def errors(self):
        """Read without moving where it writes."""
        return os.pread(self.said.fileno(), 1 << 20, 0)

    def text(self):
        answer = self.ask(PATH)
        check(answer.status == 200, "scrape:", answer.raw)
        return answer.body.decode()


def push(store, text, *options):
    return run(DUECTL, "push", *options, store, text=text).decode().split()


def refused(status, *arguments, listen="0", says=b""):
    """It serves nothing, ends so, and says why."""
    metrics = Metrics(*arguments, listen=listen)
    got = metrics.stop() if metrics.url else metrics.process.wait()
    check(not metrics.url, listen, arguments, "are served:", metrics.url)
    check(got == status, listen, arguments, "status", got, "not", status, metrics.errors())
    check(says in metrics.errors(), listen, arguments, "does not say", says, metrics.errors())


def same_text(metrics, *arguments):
    """A scrape is what the command prints, but for what moves between two of these."""
    before = run(DUECTL, "metrics", *arguments).decode().split("\n")
    text = metrics.text().split("\n")
    after = run(DUECTL, "metrics", *arguments).decode().split("\n")
    check(len(before) == len(text) == len(after), arguments, "lines", len(before), len(text))
    stays = [(a, b) for a, b, c in zip(before, text, after) if a == c]
    check(len(stays) > len(text) / 2, "most of it moves:", before, after)
    for a, b in stays:
        check(a == b, arguments, "prints", a, "and serves", b)
    for a, b in zip(before, text):
        check(a.split(" ")[0] == b.split(" ")[0], arguments, "prints", a, "and serves", b)


# ---- Where it listens ----------------------------------------------------------------------------

def test_usage():
    for listen in ("0.0.0.0:0", "[::]:0", ":0", "10.0.0.1:0", "128.0.0.1:0", "126.0.0.1:0",
                   "[::2]:0", "::1:0", "[127.0.0.1]:0", "127.1:0", "localhost.evil:0",
                   "evil.example:0", "[::ffff:127.0.0.1]:0", "1" * 100 + ":0"):
        refused(2, "a.db", listen=listen, says=b"asks for no password")
    for listen in ("", "x", "-1", "65536", "99999999", "1x", "127.0.0.1:", "127.0.0.1", "[::1]"):
        refused(2, "a.db", listen=listen, says=b"takes a port")
    refused(2, says=b"no store")
    refused(2, "a.db", "b.db", says=b"one URL at most")
    refused(2, "--control", "c", "--topic", "mail", says=b"goes without --control")
    refused(2, "--json", "a.db", says=b"no such option")
    run(DUECTL, "metrics", "a.db", "--listen", status=2)


def test_port():
    metrics = Metrics("a.db")
    refused(3, "a.db", listen=str(metrics.port), says=b"in use")
    check(metrics.stop() == 143, "stop")
    again = Metrics("a.db", listen=f"localhost:{metrics.port}")
    check(again.port == metrics.port, "the port is not free again")
    check(again.ask(PATH).status == 200, "at a port of one's choice")
    check(again.stop() == 143, "stop")


def listening(port):
    """The addresses at which somebody listens at this port."""
    found = []
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(name):
            with open(name, encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
            found += [row[1].split(":")[0] for row in rows
                      if row[3] == "0A" and int(row[1].split(":")[1], 16) == port]
    return found


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
            return True
    except OSError:
        return False


def test_addresses():
    """Nobody but this machine can connect, and only the address's own name is answered."""
    wanted = {"0": "0100007F", "127.0.0.2:0": "0200007F", "localhost:0": "0100007F"}
    if has_ipv6():
        wanted["[::1]:0"] = "00000000000000000000000001000000"
    for listen, address in wanted.items():
        metrics = Metrics("a.db", listen=listen)
        check(listening(metrics.port) == [address], listen, "is", listening(metrics.port))
        check(metrics.ask(PATH).status == 200, "at", listen)
        check(metrics.ask(PATH, host=f"localhost:{metrics.port}").status == 200, listen, "by name")
        check(metrics.ask(PATH, host=f"127.0.0.3:{metrics.port}").status == 421, listen, "another")
        check(metrics.stop() == 143, "stop")


# ---- What is asked -------------------------------------------------------------------------------

def test_requests(metrics):
    answer = metrics.ask(PATH)
    check(answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8",
          answer.headers)
    head = metrics.ask(PATH, method="HEAD")
    check(head.status == 200 and head.body == b"", "HEAD", head.raw)
    check(int(head.headers["content-length"]) > 500, "HEAD", head.headers)
    check(metrics.ask(PATH + "?x=1").status == 200, "with an argument")
    for path in ("/", "//", "/metrics/", "/metricsx", "/Metrics", "//metrics", "/api/look",
                 "/a.db", "/%2e%2e/a.db"):
        for method in ("GET", "HEAD", "PUT"):
            check(metrics.ask(path, method=method).status == 404, method, path)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get"):
        answer = metrics.ask(PATH, method=method)
        check(answer.status in (400, 405) and b"due_jobs" not in answer.raw, method, answer.raw)
        if answer.status == 405:
            check(answer.headers["allow"] == "GET, HEAD", method, answer.headers)
    check(metrics.ask(PATH, method="POST", body=b"x" * 1000).status == 405, "POST")


def test_names(metrics):
    port = metrics.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}",
                 f"127.0.0.1:{port}.evil.example", f"[::1]:{port}", f"0.0.0.0:{port}", "",
                 "x" * 300, f"localhost.evil:{port}", f"127.0.0.1:{port}@evil"):
        answer = metrics.raw(f"GET {PATH} HTTP/1.1\r\nHost: {host}\r\n"
                             "Connection: close\r\n\r\n".encode())
        check(answer.status in (400, 421), "Host", host, answer.status)
        check(b"due_jobs" not in answer.raw, "Host", host, "is answered")
    for line in ("HTTP/1.1", "HTTP/1.0"):
        answer = metrics.raw(f"GET {PATH} {line}\r\n\r\n".encode())
        check(answer.status in (400, 421), "no Host", answer.status)
    for origin in ("null", "http://evil.example"):
        check(metrics.ask(PATH, Origin=origin).status == 403, "Origin", origin)


def jobs(text, state):
    found = re.search(r'^due_jobs\{[^}]*state="%s"\} (\d+)$' % state, text, re.M)
    return int(found[1]) if found else -1


def test_store(store):
    push(store, b"1h one\n2h two\n", "--topic", "mail")
    push(store, b"@2020-01-01 old\n")
    metrics = Metrics(store)
    same_text(metrics, store)
    check(jobs(metrics.text(), "delayed") == 2 and jobs(metrics.text(), "ready") == 1, "jobs")
    push(store, b"3h three\n")
    check(jobs(metrics.text(), "delayed") == 3, "a change is not seen")
    test_requests(metrics)
    test_names(metrics)
    of_topic = Metrics("--topic", "mail", store)
    same_text(of_topic, "--topic", "mail", store)
    check(jobs(of_topic.text(), "delayed") == 2, "of a topic")
    for one in (metrics, of_topic):
        check(one.stop() == 143, "stop")
        check(one.errors().count(b"\n") == 1, "it says", one.errors())


def test_owner():
    """A running queue, by its control socket."""
    push("b.db", b"1h one\n2h two\n")
    worker = subprocess.Popen([DUECTL, "work", "--store", "b.db", "--control", "c", "--exec",
                               "true"], stderr=subprocess.DEVNULL)
    atexit.register(worker.kill)
    metrics = Metrics("--control", "c")
    answer = metrics.until(PATH, lambda a: a.status == 200 and b"due_jobs" in a.body)
    check(jobs(answer.body.decode(), "delayed") == 2, answer.body)
    same_text(metrics, "--control", "c")
    run(DUECTL, "clear", "--yes", "--control", "c")
    check(jobs(metrics.text(), "delayed") == 0, "a change is not seen")
    worker.terminate()
    worker.wait()
    check(metrics.ask(PATH).status == 503, "its owner is gone")
    check(metrics.stop(signal.SIGINT) == 130, "stop")


# ---- What goes wrong -----------------------------------------------------------------------------

def away(metrics, why):
    """Two scrapes are told that there is nothing, and nothing else."""
    said = metrics.errors().count(why)
    for _ in range(2):
        answer = metrics.ask(PATH)
        check(answer.status == 503, "without its store:", answer.raw)
        check(re.fullmatch(rb"[^\n]+\n", answer.body), "not one line:", answer.body)
        check(b".db" not in answer.raw and b"unix:" not in answer.raw, "it tells", answer.raw)
        check(SECRET.encode() not in answer.raw, "it tells the password")
    check(metrics.errors().count(why) == said + 1, "it says", metrics.errors())


def test_file_away():
    push("d.db", b"1h one\n")
    metrics = Metrics("d.db")
    for _ in range(2):
        check(jobs(metrics.text(), "delayed") == 1, "with its store")
        os.rename("d.db", "e.db")
        away(metrics, b"d.db")
        check(metrics.ask("/none").status == 404, "it does not go on")
        os.rename("e.db", "d.db")
    check(jobs(metrics.text(), "delayed") == 1, "with its store again")
    check(metrics.stop(signal.SIGHUP) == 129, "stop")


def redis(password, *words):
    subprocess.run(["redis-cli", "-s", SOCKET, *words], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, REDISCLI_AUTH=password))


def untold(metrics):
    for name in ("cmdline", "environ"):
        with open(f"/proc/{metrics.process.pid}/{name}", "rb") as file:
            check(SECRET.encode() not in file.read(), "the password stands in", name)
    check(SECRET.encode() not in metrics.errors(), "the password is told")


def test_server_away(metrics):
    untold(metrics)
    check(metrics.ask(PATH).status == 200, "with its store")
    redis(SECRET, "config", "set", "requirepass", "other")
    away(metrics, b"refuses the user or the password")
    redis("other", "config", "set", "requirepass", SECRET)
    check(metrics.ask(PATH).status == 200, "with its store again")
    untold(metrics)
    check(metrics.stop() == 143, "stop")


def test_unreadable():
    """What cannot be read is said once, and the others are counted."""
    push(REDIS, b"1h one\n2h two\n3h three\n", "--queue", "torn")
    metrics = Metrics("--queue", "torn", REDIS)
    redis(SECRET, "eval", "redis.call('hset', KEYS[1], redis.call('hkeys', KEYS[1])[1], 'x')", "1",
          "due:{torn}:j")
    for _ in range(2):
        check(jobs(metrics.text(), "delayed") == 2, "the others")
    check(metrics.errors().count(b"1 jobs cannot be read") == 1, "it says", metrics.errors())
    check(metrics.stop() == 143, "stop")


def test_no_store_yet():
    """It may begin before its store."""
    metrics = Metrics("new.db")
    away(metrics, b"new.db")
    push("new.db", b"1h one\n")
    check(jobs(metrics.text(), "delayed") == 1, "a store that is new")
    check(metrics.stop() == 143, "stop")
    for url, why in (("redis://127.0.0.1:1", b"cannot connect"),
                     (f"unix://:wrong-{SECRET}@{SOCKET}", b"refuses the user or the password")):
        metrics = Metrics(url)
        away(metrics, why)
        untold(metrics)
        check(metrics.stop() == 143, "stop")


# ---- Those who are slow --------------------------------------------------------------------------

def waits(s):
    return not select.select([s], [], [], 0)[0]


def crowded(metrics):
    """A scrape beside many who say nothing, or half of something: is any of them still there when
    it is answered?  One who is waited for by himself would have been ended before."""
    crowd = [metrics.connect() for _ in range(28)]
    for i, one in enumerate(crowd):
        one.sendall((b"", b"GET ", f"GET {PATH} HTTP/1.1\r\nHost: {metrics.host}\r\nX: ".encode(),
                     f"PUT {PATH} HTTP/1.1\r\nContent-Length: 99\r\n".encode())[i % 4])
    check(jobs(metrics.text(), "delayed") == 1, "beside those who are silent")
    there = any(waits(one) for one in crowd)
    for one in crowd:
        one.close()
    return there


def test_silent_clients():
    """Who is silent, or does not wait for the answer, keeps nobody else waiting."""
    metrics = Metrics("a.db")
    check(any(crowded(metrics) for _ in range(3)), "those who are silent come first")
    for _ in range(10):
        with metrics.connect() as s:
            s.sendall(f"GET {PATH} HTTP/1.1\r\nHost: {metrics.host}\r\n\r\n".encode())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    metrics.until(PATH, lambda a: a.status == 200)
    check(metrics.stop() == 143, "stop")


def test_silent_store():
    """A store that never answers keeps its scrapes waiting, a few at a time, and nobody else."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(100)
        metrics = Metrics(f"redis://:{SECRET}@127.0.0.1:{server.getsockname()[1]}")
        scrapes, held = [], []
        for _ in range(4):
            one = metrics.connect()
            one.sendall(f"GET {PATH} HTTP/1.1\r\nHost: {metrics.host}\r\n\r\n".encode())
            scrapes.append(one)
            held.append(server.accept()[0])
        check(metrics.ask("/none").status == 404, "beside scrapes that wait")
        fifth = metrics.ask(PATH)
        check(fifth.status == 503 and b"try again" in fifth.body, "one too many:", fifth.raw)
        check(all(waits(one) for one in scrapes), "a scrape was answered without its store")
        untold(metrics)
        held[0].close()
        answer = scrapes[0].recv(1 << 16)
        check(answer.startswith(b"HTTP/1.1 503 "), "its store has gone:", answer)
        check(metrics.stop() == 143, "it does not end while it waits")
        for one in scrapes + held:
            one.close()


def main():
    push("a.db", b"1h one\n")
    test_usage()
    test_port()
    test_addresses()
    test_store("f.db")
    test_store(REDIS)
    test_owner()
    test_file_away()
    test_server_away(Metrics("--store", REDIS))
    test_server_away(Metrics(environment={"DUE_STORE_URL": REDIS}))
    test_unreadable()
    test_no_store_yet()
    test_silent_clients()
    test_silent_store()
    sys.exit(web_lab.failures > 0)


main()
