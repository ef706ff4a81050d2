"""web_plain DUECTL URL SECRET [DIR] - `duectl web` asked by plain HTTP, in a new directory.

URL is a Redis whose password is SECRET.
"""
import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import web_lab
from web_lab import Web, check, run

DUECTL, REDIS, SECRET = sys.argv[1:4]
FILE = "a.db"
GUARDS = {"cache-control": "no-store", "x-content-type-options": "nosniff",
          "x-frame-options": "DENY", "referrer-policy": "no-referrer"}
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
NOBODY = "ff00000000009900000000000099" + "0000"


def push(store, text, *options):
    """The ids of what is put in."""
    return run(DUECTL, "push", *options, store, text=text).decode().split()


def kill_jobs(store, *texts):
    """Dead jobs with these texts: their command fails."""
    ids = push(store, b"".join(b"0s " + text + b"\n" for text in texts), "--topic", "bad")
    with subprocess.Popen([DUECTL, "work", "--topic", "bad", "--attempts", "1", "--exec", "exit 1",
                           "--store", store], stderr=subprocess.DEVNULL) as work:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            listed = run(DUECTL, "dead", "ls", "--json", store)
            if listed.count(b"\n") == len(texts):
                break
            time.sleep(0.05)
        work.terminate()
    return ids


# ---- Who may see it ------------------------------------------------------------------------------

def guarded(answer, *what):
    """Every answer says how a browser is to take it."""
    for name, value in GUARDS.items():
        check(answer.headers.get(name) == value, what, "has no", name)
    policy = answer.headers.get("content-security-policy", "")
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'",
                 "form-action 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"):
        check(part in policy, what, "has no policy", part)
    check("unsafe" not in policy and "http" not in policy, what, "has a policy that is too wide")


def test_token(web):
    changed = {digit: "1" if digit == "0" else "0" for digit in "0123456789abcdef"}
    for path in ("/", "//", f"/{web.token[:-1]}{changed[web.token[-1]]}/",
                 f"/{changed[web.token[0]]}{web.token[1:]}/",
                 f"/{web.token[:-1]}/", f"/{web.token}x/", f"/{web.token.upper()}x/",
                 f"/x/{web.token}/", "/api/look", f"/?{web.token}", "/%00",
                 f"/{'0' * 32}/api/jobs", f"/{web.token[:16]}%00{web.token[17:]}/"):
        answer = web.ask(path)
        check(answer.status == 403, "token:", path, answer.status)
        check(web.token.encode() not in answer.raw, "the token is told to", path)
        guarded(answer, path)
    check(web.ask(f"/{web.token}").headers.get("location") == f"/{web.token}/", "no way to the /")
    other = Web(DUECTL, FILE)
    check(other.token != web.token and re.fullmatch("[0-9a-f]{32}", web.token), "same token again")
    check(other.stop() == 143, "stop")


def test_names(web):
    port = web.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}",
                 f"127.0.0.1:{port}.evil.example", f"[::1]:{port}", f"0.0.0.0:{port}", "",
                 "x" * 300, f"localhost.evil:{port}", f"127.0.0.1:{port}@evil"):
        answer = web.raw(f"GET /{web.token}/api/look HTTP/1.1\r\nHost: {host}\r\n"
                         "Connection: close\r\n\r\n".encode())
        check(answer.status in (400, 421), "Host", host, answer.status)
        check(b"queue" not in answer.body, "Host", host, "is answered")
    answer = web.raw(f"GET /{web.token}/ HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
    check(answer.status in (400, 421), "no Host", answer.status)
    answer = web.raw(f"GET /{web.token}/ HTTP/1.0\r\n\r\n".encode())
    check(answer.status in (400, 421), "no Host, HTTP/1.0", answer.status)
    for origin in ("null", "http://evil.example", f"https://127.0.0.1:{port}", "http://127.0.0.1",
                   f"http://127.0.0.1:{port}.evil.example", ""):
        check(web.ask("api/look", Origin=origin).status == 403, "Origin", origin)
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"127.0.0.1:{port}"):
        check(web.ask("api/look", host=host).status == 200, "Host", host)
    check(web.ask("api/look", Origin=f"http://127.0.0.1:{port}").status == 200, "our own Origin")


def test_socket(web):
    """Nobody but this machine can connect."""
    listening = []
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(name):
            with open(name, encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
            listening += [row[1] for row in rows
                          if row[3] == "0A" and int(row[1].split(":")[1], 16) == web.port]
    if check(len(listening) == 1, "listens at", listening):
        check(listening[0].split(":")[0] == "0100007F", "listens at", listening)


def test_page(web):
    """It is of its own files, and asks nobody else."""
    page = web.ask("")
    text = page.body.decode()
    names = re.findall(r'(?:src|href)="([^"]*)"', text)
    check(page.status == 200 and page.headers["content-type"].startswith("text/html"), "page")
    check(len(names) >= 5, "the page has", names)
    check(re.search(r"<script(?![^>]* src=)|\son\w+=|style=|<style", text) is None, "inline")
    guarded(page, "page")
    for name in names:
        file = web.ask(name)
        check(file.status == 200 and len(file.body) > 100, name, file.status)
        guarded(file, name)
        check(re.search(rb"https?://(?!www\.w3\.org/)", file.body) is None, name, "names others")
        if name.endswith(".js"):
            check(re.search(rb"innerHTML|outerHTML|insertAdjacent|document\.write|eval\("
                            rb"|Function\(", file.body) is None, name, "makes code of text")
    for path in ("none", "../a.db", "..%2fa.db", "%2e%2e/a.db", "page.html", "api/", "api/none"):
        check(web.ask(path).status == 404, path)
    head = web.ask("", method="HEAD")
    check(head.status == 200 and head.body == b"", "HEAD")
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get"):
        check(web.ask("api/look", method=method).status in (400, 405), method)


# ---- What is asked -------------------------------------------------------------------------------

def test_looks(web):
    answer = web.until("api/look", lambda a: len(a.named("sample")) >= 3)
    about = answer.lines()[0]
    check(about["store"] and not about["control"] and not about["writes"], about)
    sample = answer.named("sample")[-1]["sample"]
    check(sample["all"]["waiting"] == 71 and sample["all"]["dead"] == 3, sample)
    check(sample["came"] == 0 and sample["went"] == 0 and sample["over_ms"] > 0, sample)
    topics = [line["topic"]["topic"] for line in answer.named("topic")]
    check(topics == ["", SCRIPT, "bad", "ballast", "mail"], topics)
    check([j["oldest"]["data"] for j in answer.named("oldest")] == ["very old", "old"],
          answer.named("oldest"))
    looks = answer.named("looks")[0]["looks"]
    web.until("api/look", lambda a: a.named("looks")[0]["looks"] > looks)
    later = web.ask(f"api/look?after={looks}")
    fresh = later.named("looks")[0]["looks"] - looks
    check(len(later.named("sample")) == fresh, "behind", looks, len(later.named("sample")), fresh)
    check(len(web.ask("api/look?after=999999").named("sample")) > 3, "a number from before")


def test_rates(web, store):
    """What comes and goes between two looks is counted, and the rest is not."""
    looks = web.ask("api/look").named("looks")[0]["looks"]

    def sums(answer):
        samples = [line["sample"] for line in answer.named("sample")]
        return [sum(sample[name] for sample in samples) for name in ("came", "went")]

    ids = push(store, b"9h new\n9h newer\n", "--topic", "mail")
    web.until(f"api/look?after={looks}", lambda a: sums(a) == [2, 0])
    run(DUECTL, "cancel", store, *ids)
    web.until(f"api/look?after={looks}", lambda a: sums(a) == [2, 2])


def ids_of(answer):
    return [line["job"]["id"] for line in answer.named("job")]


def test_lists(web, mail, keyed):
    first = web.ask("api/jobs?topic=mail&most=25")
    check(ids_of(first) == mail[:25] and first.named("more")[0]["more"], "first page")
    last = web.ask("api/jobs?topic=mail&most=25&from=50")
    check(ids_of(last) == mail[50:] and not last.named("more")[0]["more"], "last page")
    check(ids_of(web.ask("api/jobs?topic=mail&from=500")) == [], "behind the end")
    check(ids_of(web.ask(f"api/jobs?find={mail[7]}")) == [mail[7]], "by id")
    check(ids_of(web.ask(f"api/jobs?find={mail[7].upper()}")) == [mail[7]], "by ID")
    check(ids_of(web.ask(f"api/jobs?find={mail[59][:28]}")) == [mail[59]], "by its beginning")
    check(ids_of(web.ask("api/jobs?find=invoice%207")) == [keyed], "by key")
    check(ids_of(web.ask("api/jobs?find=voice&topic=mail")) == [], "by key, elsewhere")
    check(len(ids_of(web.ask("api/jobs?state=dead"))) == 3, "dead")
    check(ids_of(web.ask("api/jobs?state=reserved")) == [], "reserved")
    missing = web.ask(f"api/jobs?find={NOBODY}")
    check(missing.named("missing")[0]["why"] == "DUE_ENOENT", missing.body)
    for bad in ("most=0", "most=201", "most=x", "from=-1", "from=1x", "most=", "find=" + "x" * 256,
                "topic=" + "x" * 256, "state=" + "x" * 20):
        check(web.ask("api/jobs?" + bad).status == 400, bad)
    for bad in ("", "?id=", "?id=ff", "?id=" + "g" * 32):
        check(web.ask("api/job" + bad).status == 400, "job", bad)


def test_hostile(web, script, long, binary):
    """Payloads are strings of JSON, whatever they are, and cut in lists."""
    listed = {line["job"]["id"]: line for line in web.ask("api/jobs").named("job")}
    check(listed[script]["job"]["data"] == SCRIPT, listed[script])
    check(listed[script]["job"]["topic"] == SCRIPT, listed[script])
    check(len(listed[long]["job"]["data"]) < 220 and listed[long]["bytes"] == 102400, "not cut")
    check(base64.b64decode(listed[binary]["job"]["data"]["base64"]) == BINARY, listed[binary])
    whole = web.ask(f"api/job?id={long}")
    check(whole.named("job")[0]["job"]["data"] == LONG.decode(), "100 kB are not whole")
    check(whole.headers["content-type"].startswith("application/x-ndjson"), whole.headers)
    guarded(whole, "a job")
    lines = [dict(line["job"]) for line in web.ask("api/jobs").named("job")]
    with open("listed", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    here = os.path.dirname(os.path.abspath(__file__))
    with open("listed", "rb") as file:
        done = subprocess.run([sys.executable, f"{here}/json_lines.py", "listed"], stdin=file,
                              capture_output=True, check=False)
    check(done.returncode == 0, "they are not as ls --json has them:", done.stderr)


# ---- What is too much ----------------------------------------------------------------------------

def test_huge(web):
    head = f"GET /{web.token}/api/look HTTP/1.1\r\nHost: {web.host}\r\n"
    for request in (head + "X: " + "x" * 200000 + "\r\n\r\n",
                    head + "".join(f"X{i}: x\r\n" for i in range(20000)) + "\r\n",
                    f"GET /{web.token}/{'x' * 100000} HTTP/1.1\r\nHost: {web.host}\r\n\r\n",
                    "x" * 100000, "\r\n" * 50000, "GET\0\0 / HTTP/1.1\r\n\r\n",
                    head.replace("HTTP/1.1", "HTTP/9.9") + "\r\n"):
        answer = web.raw(request.encode())
        check(answer.status == 0 or 400 <= answer.status < 600, "huge:", answer.raw[:100])
        check(web.ask("api/look").status == 200, "it does not go on after", request[:40])


def drip(web, ended):
    """A client that sends a byte now and then, for ever: it is ended."""
    with web.connect() as s:
        began = time.monotonic()
        try:
            s.sendall(f"GET /{web.token}/ HTTP/1.1\r\nHost: {web.host}\r\nX: ".encode())
            s.settimeout(0.5)
            while time.monotonic() - began < 100:
                s.sendall(b"x")
                try:
                    if s.recv(1000) == b"":
                        break
                except TimeoutError:
                    pass
        except ConnectionError:
            pass
        ended.append(time.monotonic() - began)


def test_crowd(web):
    """As many as may connect and say nothing; others are served when these have been ended."""
    crowd = []
    for _ in range(40):
        try:
            crowd.append(web.connect())
        except OSError:
            break
    end = time.monotonic() + 60
    status = 0
    while status != 200 and time.monotonic() < end:
        try:
            status = web.ask("api/look").status
        except OSError:
            time.sleep(0.2)
    check(status == 200, "a crowd that says nothing keeps everybody out")
    for one in crowd:
        one.close()


def test_parallel(web):
    """More questions than processes: each is answered, or told to come again."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(web.ask("api/jobs").status))
               for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(len(answers) == 12 and set(answers) <= {200, 503} and 200 in answers, answers)


def test_gone(web):
    """A client that does not wait for its answer."""
    for _ in range(10):
        with web.connect() as s:
            s.sendall(f"GET /{web.token}/api/jobs HTTP/1.1\r\nHost: {web.host}\r\n\r\n".encode())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    web.until("api/jobs", lambda a: a.status == 200)


# ---- Changes -------------------------------------------------------------------------------------

def test_read_only(web, dead):
    for verb in ("kick", "drop"):
        check(web.change({"verb": verb, "ids": [dead]}).status == 403, verb, "is allowed")
    check(web.ask("api/change").status == 404, "a change by GET")
    check(len(ids_of(web.ask("api/jobs?state=dead"))) == 3, "something was changed")


def test_refused_changes(web, dead):
    request = {"verb": "drop", "ids": [dead]}
    body = json.dumps(request).encode()
    check(web.ask("/api/change", "POST", body).status == 403, "without the token")
    check(web.ask(f"/{'0' * 32}/api/change", "POST", body).status == 403, "with a wrong one")
    check(web.change(request, Origin=None).status == 403, "without Origin")
    check(web.change(request, Origin="null").status == 403, "with the Origin null")
    check(web.change(request, Origin="http://evil.example").status == 403, "from elsewhere")
    check(web.change(request, host="evil.example").status == 421, "under another name")
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        check(web.change(request, Content_Type=kind).status == 415, "as", kind)
    check(web.ask("api/change", "PUT", body).status == 405, "by PUT")
    check(web.ask("api/other", "POST", body).status == 404, "elsewhere")
    for bad in (b"x", b"{}", b"[" * 60000, b'{"verb":"kick"}', b'{"verb":"drop","ids":["ff"]}',
                b'{"verb":"drop","ids":[' + b",".join([b'"%s"' % dead.encode()] * 257) + b"]}",
                b'{"verb":"drop_all","topic":"\\u0000"}', b"\xff" * 100):
        check(web.change(bad).status == 400, bad[:40])
    for verb in ("clear", "pause", "resume", "stats", "metrics"):
        check(web.change({"verb": verb}).status == 403, verb)
    check(web.change({"verb": "cancel", "ids": [dead]}).status == 403, "cancel")
    check(web.change(b"", Content_Length=None).status == 411, "without a length")
    check(web.change(b"", Content_Length="1000000000").status == 413, "a gigabyte")
    check(web.change(b"", Content_Length="65537").status == 413, "65,537 bytes")
    check(web.change(b"", Content_Length="0").status in (400, 413), "nothing")
    chunked = web.change(b"5\r\n{}{}{\r\n0\r\n\r\n", Content_Length=None,
                         Transfer_Encoding="chunked")
    check(chunked.status == 411, "chunks", chunked.status)
    check(ids_of(web.ask(f"api/jobs?find={dead}")) == [dead], "a refused change was made")


def test_changes(web, store, dead):
    answer = web.change({"verb": "kick", "ids": [dead[0], NOBODY]})
    check(answer.status == 200, answer.raw)
    check([line["result"] for line in answer.named("result")] == ["DUE_OK", "DUE_ENOENT"],
          answer.body)
    check(b'"state":"waiting"' in run(DUECTL, "show", "--json", store, dead[0]), "not kicked")
    answer = web.change({"verb": "drop", "ids": [dead[1]]})
    check(answer.named("result")[0]["result"] == "DUE_OK", answer.body)
    run(DUECTL, "show", store, dead[1], status=1)
    waiting = web.change({"verb": "drop", "ids": [dead[0]]})
    check(waiting.named("result")[0]["result"] != "DUE_OK", "what waits can be dropped")
    check(web.change({"verb": "kick_all", "topic": "none"}).named("count")[0]["count"] == 0, "none")
    check(web.change({"verb": "drop_all"}).named("count")[0]["count"] == len(dead) - 2, "drop_all")
    web.until("api/look", lambda a: a.named("sample")[-1]["sample"]["all"]["dead"] == 0)


# ---- The whole -----------------------------------------------------------------------------------

LONG = b"long " * 20480
BINARY = b"\xff\xfe\x00\x80<script>\xc3(" + bytes(range(32))


def serve_store(store):
    mail = push(store, b"".join(b"%dh job %d\n" % (i, i) for i in range(1, 61)), "--topic", "mail")
    keyed = push(store, b"1h bill\n", "--key", "invoice 7")[0]
    push(store, b"@2021-01-01 old\n@2020-01-01 very old\n")
    ids = {}
    for name, data, options in (("script", SCRIPT.encode(), ("--topic", SCRIPT)),
                                ("long", LONG, ()), ("binary", BINARY, ())):
        with open("payload", "wb") as file:
            file.write(data)
        ids[name] = run(DUECTL, "push", "--at", "2h", *options, store, "payload").decode().strip()
    for i in range(5):
        push(store, b"3h more\n", "--topic", "ballast", "--key", f"b{i}")
    dead = kill_jobs(store, b"one", SCRIPT.encode(), b"\xff\xfe")
    web = Web(DUECTL, store)
    if not check(web.url, "nothing is served", web.errors()):
        return
    ended = []
    slow = threading.Thread(target=drip, args=(web, ended))
    if store == FILE:
        slow.start()
    test_socket(web)
    test_token(web)
    test_names(web)
    test_page(web)
    test_lists(web, mail, keyed)
    test_hostile(web, **ids)
    test_huge(web)
    test_parallel(web)
    test_gone(web)
    test_read_only(web, dead[0])
    test_looks(web)
    test_rates(web, store)
    if store == FILE:
        test_crowd(web)
        slow.join()
        check(ended and ended[0] < 90, "a slow client is never ended")
    check(web.stop() == 143, "SIGTERM")
    check(web.errors() == b"", "it has said", web.errors())
    web = Web(DUECTL, "--allow-writes", "--store", store)
    test_refused_changes(web, dead[0])
    test_changes(web, store, dead)
    check(web.stop(signal.SIGINT) == 130, "SIGINT")


def main():
    for store in (FILE, REDIS):
        serve_store(store)
    sys.exit(web_lab.failures > 0)


main()
