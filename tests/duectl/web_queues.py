"""web_queues DUECTL URL SECRET - `duectl web` of several queues, in a new directory.

URL is a Redis whose password is SECRET.
"""
import json
import os
import socket
import subprocess
import sys
import threading
import time

import web_lab
from web_lab import Web, check, run

DUECTL, REDIS, SECRET = sys.argv[1:4]
HOSTILE = b"<b>\xff\"\\\x1b[31m.db"


def push(store, text, *options):
    return run(DUECTL, "push", *options, store, text=text).decode().split()


def listed(answer):
    """The list of queues, by number."""
    return {line["listed"]["number"]: line["listed"] for line in answer.named("listed")}


def texts_of(answer):
    return [line["job"]["data"] for line in answer.named("job")]


def refused(status, *arguments, says):
    web = Web(DUECTL, *arguments)
    got = web.process.wait(timeout=60) if not web.url else web.stop()
    check(not web.url and got == status, arguments, "status", got, web.errors())
    check(says in web.errors(), arguments, "does not say", says, "but", web.errors())
    check(SECRET.encode() not in web.errors(), arguments, "tells the password")


def test_usage():
    refused(2, *["a.db"] * 17, says=b"16 URLs at most")
    refused(2, *["--store=a.db"] * 17, says=b"16 URLs at most")
    refused(2, *["--queue=q"] * 17, REDIS, says=b"16 queues at most")
    refused(2, *["--queue=q"] * 9, REDIS, REDIS, says=b"16 queues at most")
    refused(2, "--queue", "one", "--queue", "a b", REDIS, says=b"--queue takes")
    refused(2, "--control", "c", "a.db", "b.db", says=b"one for each queue")
    refused(2, "--control", "c", "--control", "-", says=b"no store")


def test_none_can_be_shown():
    """Then nothing is served, and the worst is the status."""
    refused(1, "--queue", "none", "--queue", "nor", REDIS, says=b"none")
    refused(3, "--queue", "none", "--store", REDIS, "redis://127.0.0.1:1", says=b"refused")


def test_list(web):
    answer = web.until("api/look", lambda a: all(q["last"] or q["end"]
                                                 for q in listed(a).values()))
    queues = listed(answer)
    check(list(queues) == [1, 2, 3, 4, 5, 6], list(queues))
    check([q["name"] for q in queues.values()] ==
          ["a.db", "<b>?\"\\?[31m.db", "mail", "news", "mail", "news"], queues)
    check(queues[2]["place"].endswith("sub/<b>?\"\\?[31m.db"), queues[2])
    check(queues[3]["place"] == REDIS.split("@")[1] and queues[5]["place"] == "/no/socket", queues)
    check([queues[n]["last"]["sample"]["all"]["waiting"] for n in range(1, 5)] == [1, 2, 3, 4],
          queues)
    for number in (5, 6):
        check(queues[number]["end"] == 3 and queues[number]["last"] is None, queues[number])
        check("no such socket" in queues[number]["said"], queues[number])
    check(all(queues[n]["end"] == 0 for n in range(1, 5)), queues)
    check(b"no such socket" in web.errors(), "what is away is not said", web.errors())


def test_each(web):
    """Each by its number; without one, the first."""
    check(texts_of(web.ask("api/jobs")) == ["a"], "the first")
    for number, texts in ((1, ["a"]), (2, ["b", "b"]), (3, ["c"] * 3), (4, ["d"] * 4)):
        about = web.ask(f"{number}/api/look").lines()[0]
        check(about["number"] == number and not about["writes"], about)
        check(texts_of(web.ask(f"{number}/api/jobs")) == texts, number, "has other jobs")
        page = web.ask(f"{number}/")
        check(page.status == 200 and b"<!doctype html>" in page.body, number, page.status)
        check(web.ask(f"{number}/page.js").status == 200, number, "page.js")
        there = web.ask(str(number))
        check(there.headers.get("location") == f"/{web.token}/{number}/", number, there.raw)
    check(web.ask("5/api/look").lines()[-1]["end"] == 3, "one that is away")
    check(web.ask("5/api/jobs").status == 502, "jobs of one that is away")
    for path in ("0/", "7/", "99/", "1000/", "007/", "1x/", "2x", "-1/", "4294967297/", "1/1/",
                 "1//", "1/../2/", "01/../a.db"):
        check(web.ask(path).status == 404, path, web.ask(path).status)


def test_guarded(web):
    """The rules are those of the page of one queue."""
    wrong = "0" * 32
    for number in range(1, 7):
        for path in ("", "api/look", "api/jobs", "page.js"):
            where = f"{number}/{path}"
            check(web.ask(f"/{wrong}/{where}").status == 403, "without the token:", where)
            check(web.ask(f"/{where}").status == 403, "without a token:", where)
            check(web.ask(where, host="evil.example").status == 421, "Host:", where)
            check(web.ask(where, Origin="http://evil.example").status == 403, "Origin:", where)
        policy = web.ask(f"{number}/").headers.get("content-security-policy", "")
        check("default-src 'none'" in policy, number, "has no policy")
        body = b'{"verb":"kick_all"}'
        check(web.ask(f"{number}/api/change", "POST", body).status == 403, number, "is changed")
        for path in ("api/look", "api/jobs"):
            check(SECRET.encode() not in web.ask(f"{number}/{path}").raw, "the password is told")


def test_comes(web):
    """A file that is not there yet, and then is."""
    number = 3
    web.until("api/look", lambda a: listed(a)[number]["end"] > 0)
    push("late.db", b"1h late\n")
    web.until("api/look", lambda a: listed(a)[number]["end"] == 0 and listed(a)[number]["last"])
    check(texts_of(web.ask(f"{number}/api/jobs")) == ["late"], "its job")


class Silent:
    """A server that takes connections and answers none."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://:{SECRET}@127.0.0.1:{self.socket.getsockname()[1]}"
        self.kept = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                self.kept.append(self.socket.accept())
        except OSError:
            pass


def test_silent():
    """A server that does not answer holds up no other queue, however often it is asked."""
    silent = Silent()
    web = Web(DUECTL, silent.url, "a.db", "late.db")
    if not check(web.url, "one that is silent keeps the others from being shown", web.errors()):
        return
    waiting = [web.connect() for _ in range(8)]
    for one in waiting:
        one.sendall(f"GET /{web.token}/1/api/jobs HTTP/1.1\r\nHost: {web.host}\r\n\r\n".encode())
    end = time.monotonic() + 60
    while len(silent.kept) < 5 and time.monotonic() < end:
        time.sleep(0.05)
    check(len(silent.kept) == 5, "a look and four answers, not", len(silent.kept))
    check(web.ask("1/api/jobs").status == 503, "a fifth answer")
    looks = web.ask("2/api/look").named("looks")[0]["looks"]
    check(texts_of(web.ask("2/api/jobs")) == ["a"], "another queue waits for it")
    check(texts_of(web.ask("3/api/jobs")) == ["late"], "a third one does")
    answer = web.until("2/api/look", lambda a: a.named("looks")[0]["looks"] > looks + 1)
    check(listed(answer)[1]["busy_ms"] > 0 and listed(answer)[1]["last"] is None, listed(answer))
    check(web.stop() == 143, "stop")
    for one in waiting:
        one.close()
    check(SECRET.encode() not in web.errors(), "the password is told")


def test_changes():
    """What is dropped is of the queue that is named."""
    for store in ("x.db", "y.db"):
        lines = [json.loads(line) for line in run(DUECTL, "export", "a.db").splitlines()]
        lines[1]["dead"] = {"cause": "buried", "at": "2026-01-01T00:00:00.000000000Z"}
        run(DUECTL, "import", store, text=b"".join(json.dumps(line).encode() + b"\n"
                                                   for line in lines))
    web = Web(DUECTL, "--allow-writes", "x.db", "y.db")
    answer = web.change({"verb": "drop_all"}, )
    check(answer.named("count")[0]["count"] == 1, answer.raw)
    check(run(DUECTL, "dead", "ls", "--json", "x.db") == b"", "it is there still")
    check(run(DUECTL, "dead", "ls", "--json", "y.db").count(b"\n") == 1, "it was of the other")
    body = b'{"verb":"kick_all"}'
    answer = web.ask("2/api/change", "POST", body)
    check(answer.named("count")[0]["count"] == 1, answer.raw)
    check(web.ask("3/api/change", "POST", body).status == 404, "a third one")
    web.until("api/look", lambda a: listed(a)[2]["last"]["sample"]["all"]["dead"] == 0)
    check(web.stop() == 143, "stop")


def test_owners():
    """Owners are asked in the order of their queues; or there are only they."""
    worker = subprocess.Popen([DUECTL, "work", "--control", "c", "--exec", "exit 0",
                               "--store", "b.db"],
                              stderr=subprocess.DEVNULL)
    while subprocess.run([DUECTL, "stats", "--control", "c"], capture_output=True,
                         check=False).returncode != 0:
        time.sleep(0.02)
    web = Web(DUECTL, "--control", "-", "--control", "c", "a.db", "b.db")
    answer = web.until("api/look", lambda a: all(q["last"] for q in listed(a).values()))
    queues = listed(answer)
    check("owner" not in queues[1]["last"]["sample"], queues[1])
    check(queues[2]["last"]["sample"]["owner"]["pid"] == worker.pid, queues[2])
    check(web.stop() == 143, "stop")
    web = Web(DUECTL, "--control", "c", "--control", "no/socket")
    queues = listed(web.until("api/look", lambda a: listed(a)[2]["end"] > 0))
    check(not queues[1]["store"] and queues[1]["name"] == "c", queues[1])
    check(queues[2]["name"] == "socket" and queues[2]["end"] == 3, queues[2])
    worker.terminate()
    worker.wait()
    check(web.stop() == 143, "stop")


def main():
    os.mkdir("sub")
    hostile = os.path.join(b"sub", HOSTILE)
    for store, text, options in (("a.db", b"1h a\n", ()), (hostile, b"1h b\n1h b\n", ()),
                                 ("b.db", b"1h b\n", ()),
                                 (REDIS, b"1h c\n" * 3, ("--queue", "mail")),
                                 (REDIS, b"1h d\n" * 4, ("--queue", "news"))):
        push(store, text, *options)
    test_usage()
    test_none_can_be_shown()
    web = Web(DUECTL, "--queue", "mail", "--queue", "news", "--store", "a.db", "--store", hostile,
              REDIS, f"unix://:{SECRET}@/no/socket")
    if check(web.url, "nothing is served", web.errors()):
        test_list(web)
        test_each(web)
        test_guarded(web)
        check(web.stop() == 143, "stop")
        check(SECRET.encode() not in web.errors(), "the password is told")
    web = Web(DUECTL, "a.db", hostile, "late.db")
    test_comes(web)
    check(web.stop() == 143, "stop")
    test_silent()
    test_changes()
    test_owners()
    sys.exit(web_lab.failures > 0)


main()
