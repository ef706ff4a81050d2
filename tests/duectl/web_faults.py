"""web_faults DUECTL URL SECRET - `duectl web` when something goes wrong, and beside an owner.

URL is a Redis whose password is SECRET, and is told another one here.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import time

import web_lab
from web_lab import Web, check, run

DUECTL, REDIS, SECRET = sys.argv[1:4]
SOCKET = REDIS.split("@")[1]


def push(store, text):
    return run(DUECTL, "push", store, text=text).decode().split()


def refused(status, *arguments, says=b"", environment=None):
    """It serves nothing, ends so, says why, and tells no secret."""
    web = Web(DUECTL, *arguments, environment=environment)
    got = web.process.wait(timeout=60) if not web.url else web.stop()
    said = web.errors()
    check(not web.url, arguments, "are served:", web.url)
    check(got == status, arguments, "status", got, "not", status, said)
    check(says in said, arguments, "does not say", says, "but", said)
    check(SECRET.encode() not in said, arguments, "tells the password")


def test_usage():
    refused(2, says=b"no store")
    for port in ("x", "-1", "65536", "99999999", "1x", ""):
        refused(2, "--port", port, "a.db", says=b"--port takes")
    refused(2, "--port", says=b"missing")
    refused(2, "--allow-write=yes", "a.db", says=b"")
    refused(2, "--queue", "a b", "a.db", says=b"--queue takes")


def test_nothing_there():
    refused(3, "redis://127.0.0.1:1", says=b"refused")
    refused(3, "unix:///no/such/socket", says=b"no such socket")
    refused(3, f"unix://:wrong-{SECRET}@{SOCKET}", says=b"refuses the user or the password")
    refused(3, f"unix://{SOCKET}", says=b"wants a password")
    refused(3, environment={"DUE_STORE_URL": f"unix://:x{SECRET}@{SOCKET}"}, says=b"refuses")
    refused(1, REDIS, "--queue", "none", says=b"none")
    refused(3, "--control", "no/socket", says=b"No such file")
    missing = Web(DUECTL, "no/such.db")
    check(missing.process.wait(timeout=60) in (1, 2, 3) and missing.errors(), "no such file")
    with open("text", "w", encoding="ascii") as file:
        file.write("no file of SQLite\n" * 100)
    other = Web(DUECTL, "text")
    check(other.process.wait(timeout=60) in (1, 2, 3) and other.errors(), "not a file of SQLite")


def test_port():
    web = Web(DUECTL, "a.db")
    refused(3, "--port", str(web.port), "a.db", says=b"in use")
    check(web.stop() == 143, "stop")
    again = Web(DUECTL, f"--port={web.port}", "a.db")
    check(again.url and again.port == web.port, "the port is not free again")
    check(again.token != web.token, "the same token")
    check(again.ask("api/look").status == 200, "at a port of one's choice")
    check(again.stop() == 143, "stop")


def test_unread():
    """Nobody reads its address."""
    ends = os.pipe()
    os.close(ends[0])
    done = subprocess.run([DUECTL, "web", "a.db"], stdout=ends[1], stderr=subprocess.PIPE,
                          timeout=60, check=False)
    os.close(ends[1])
    check(done.returncode == 3 and done.stderr == b"", "unread:", done)


def is_there(pid):
    """Is this process alive, and no mere entry that nobody has asked for?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_silent_store():
    """A server that never answers: a signal ends it, before anything is served and after."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"redis://:{SECRET}@127.0.0.1:{server.getsockname()[1]}"
        with subprocess.Popen([DUECTL, "web", url], stdout=subprocess.DEVNULL) as web:
            one, _ = server.accept()
            one.recv(100)
            web.send_signal(signal.SIGTERM)
            check(web.wait(timeout=60) == 143, "it does not end while it waits")
            one.close()
        with subprocess.Popen([DUECTL, "web", url], stdout=subprocess.DEVNULL) as web:
            one, _ = server.accept()
            with open(f"/proc/{web.pid}/task/{web.pid}/children", encoding="ascii") as file:
                look = int(file.read())
            os.kill(look, signal.SIGSTOP)
            web.kill()
            web.wait()
            end = time.monotonic() + 60
            while is_there(look) and time.monotonic() < end:
                time.sleep(0.05)
            if not check(not is_there(look), "a look outlives its parent"):
                os.kill(look, signal.SIGKILL)
            one.close()


def test_store_goes(web):
    """The store refuses from now on: the page says so, and goes on."""
    command = ["redis-cli", "-s", SOCKET]
    environment = dict(os.environ, REDISCLI_AUTH=SECRET)
    subprocess.run(command + ["config", "set", "requirepass", "other"], env=environment,
                   check=True, stdout=subprocess.DEVNULL)
    answer = web.until("api/look", lambda a: a.lines()[-1]["end"] == 3)
    check("refuses" in answer.lines()[-1]["said"], answer.lines()[-1])
    check(answer.named("sample") and answer.named("topic"), "what was seen is gone")
    jobs = web.ask("api/jobs")
    check(jobs.status == 502 and jobs.lines()[-1]["end"] == 3, jobs.raw)
    check(web.ask("").status == 200, "the page")
    for where in (answer.raw, jobs.raw, web.errors()):
        check(SECRET.encode() not in where, "the password is told")
    environment["REDISCLI_AUTH"] = "other"
    subprocess.run(command + ["config", "set", "requirepass", SECRET], env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    web.until("api/look", lambda a: a.lines()[-1]["end"] == 0)


def test_secret(web):
    """What other users see of it, and what its processes were started with."""
    for name in ("cmdline", "environ"):
        with open(f"/proc/{web.process.pid}/{name}", "rb") as file:
            check(SECRET.encode() not in file.read(), "the password stands in", name)


def test_server():
    push(REDIS, b"1h one\n")
    web = Web(DUECTL, "--store", REDIS)
    test_secret(web)
    test_store_goes(web)
    check(web.stop() == 143, "stop")
    web = Web(DUECTL, environment={"DUE_STORE_URL": REDIS})
    test_secret(web)
    check(web.ask("api/look").named("sample"), "from the environment")
    check(web.stop() == 143, "stop")


# ---- Beside an owner -----------------------------------------------------------------------------

def rates(answer, name):
    owners = [line["sample"]["owner"][name] for line in answer.named("sample")
              if "owner" in line["sample"]]
    return owners[-1] - owners[0]


def test_owner(store):
    """A queue in use: its owner is asked for what it has counted, and for changes."""
    dead = push(store, b"0s bad\n0s bad\n0s bad\n")
    push(store, b"".join(b"%dms good\n" % i for i in range(0, 4000, 20)) + b"9h later\n")
    worker = subprocess.Popen(
        [DUECTL, "work", "--store", store, "--control", "c", "--attempts", "1",
         "--exec", '[ "$DUE_TEXT" != bad ]'], stderr=subprocess.DEVNULL)
    while subprocess.run([DUECTL, "stats", "--control", "c"], capture_output=True,
                         check=False).returncode != 0:
        time.sleep(0.02)
    alone = Web(DUECTL, "--allow-writes", store)
    both = Web(DUECTL, "--allow-writes", "--control", "c", store)
    figures = Web(DUECTL, "--allow-writes", "--control", "c")

    both.until("api/look", lambda a: len(a.named("sample")) > 1 and rates(a, "acked") > 0)
    answer = both.until("api/look", lambda a: a.named("sample")[-1]["sample"]["all"]["dead"] == 3)
    sample = answer.named("sample")[-1]["sample"]
    check(sample["owner"]["pid"] == worker.pid, sample["owner"])
    check(len(sample["late"]) > 5 and sample["late"][-1][0] == "+Inf", sample["late"])
    check(float(sample["overdue_s"]) >= 0, sample)
    refused_change = alone.change({"verb": "kick", "ids": [dead[0]]})
    check(refused_change.status == 502, refused_change.raw)
    check(f" {worker.pid} on " in refused_change.lines()[-1]["said"], refused_change.body)
    answer = both.change({"verb": "drop", "ids": dead[:1]})
    check(answer.status == 200 and answer.named("result")[0]["result"] == "DUE_OK", answer.raw)
    run(DUECTL, "show", store, dead[0], status=1)

    about = figures.ask("api/look").lines()[0]
    check(not about["store"] and about["control"], about)
    answer = figures.until("api/look", lambda a: a.named("metrics"))
    check("due_topic_jobs{" in answer.named("metrics")[0]["metrics"], "no topics")
    check("all" not in answer.named("sample")[-1]["sample"], "there is no store to look into")
    check(figures.ask("api/jobs").status == 404, "jobs without a store")
    check(figures.ask(f"api/job?id={dead[1]}").status == 404, "a job without a store")
    answer = figures.change({"verb": "drop_all"})
    check(answer.named("count")[0]["count"] == 2, answer.raw)

    worker.terminate()
    worker.wait()
    answer = both.until("api/look", lambda a: a.lines()[-1]["end"] == 3)
    check(answer.lines()[-1]["said"], "that its owner is gone is not said")
    looks = answer.named("looks")[0]["looks"]
    both.until("api/look", lambda a: a.named("looks")[0]["looks"] > looks)
    check(figures.until("api/look", lambda a: a.lines()[-1]["end"] == 3), "its owner is gone")
    for web in (alone, both, figures):
        check(web.stop() == 143, "stop")
        check(web.errors() == b"", web.errors())


def is_writing(parent, name):
    """Does a process that it has started have this file open, to write into it?"""
    with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
        pids = file.read().split()
    for pid in pids:
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if os.readlink(f"/proc/{pid}/fd/{fd}").endswith("/" + name):
                    with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as file:
                        if int(file.read().split("flags:")[1].split()[0], 8) & 3 == os.O_RDWR:
                            return True
        except OSError:
            pass
    return False


def test_stop_while_changing():
    """A change that was begun ends, although a signal has come."""
    ids = push("b.db", b"1h x\n" * 2000)
    lines = [json.loads(line) for line in run(DUECTL, "export", "b.db").splitlines()]
    for line in lines[1:-1]:
        line["dead"] = {"cause": "buried", "at": "2026-01-01T00:00:00.000000000Z"}
    run(DUECTL, "import", "dead.db", text=b"".join(json.dumps(line).encode() + b"\n"
                                                   for line in lines))
    web = Web(DUECTL, "--allow-writes", "dead.db")
    with web.connect() as s:
        body = json.dumps({"verb": "kick_all"})
        s.sendall(f"POST /{web.token}/api/change HTTP/1.1\r\nHost: {web.host}\r\n"
                  f"Origin: http://{web.host}\r\nContent-Type: application/json\r\n"
                  f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        began = False
        end = time.monotonic() + 60
        while not began and time.monotonic() < end:
            began = is_writing(web.process.pid, "dead.db")
        check(began, "no change was begun")
        check(web.stop() == 143, "stop")
    dead = run(DUECTL, "dead", "ls", "--json", "dead.db").count(b"\n")
    check(dead == 0, "a change was broken off:", dead, "of", len(ids), "are dead")
    run(DUECTL, "verify", "dead.db")


def main():
    push("a.db", b"1h one\n")
    test_usage()
    test_nothing_there()
    test_port()
    test_unread()
    test_silent_store()
    test_server()
    test_owner("c.db")
    test_owner(REDIS)
    test_stop_while_changing()
    sys.exit(web_lab.failures > 0)


main()
