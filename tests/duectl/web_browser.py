"""web_browser DUECTL PICTURE - the page of `duectl web` in a headless Chromium, in a new directory.

PICTURE is where the page of a queue in use is drawn to, as a file of PNG: docs/duectl-web.png is
one of these.
"""
import os
import random
import struct
import subprocess
import sys
import threading
import time

import web_lab
from web_driver import Browser
from web_lab import Web, check, run

DUECTL, PICTURE = sys.argv[1:3]
MARK = "<script>window.owned=1</script><img src=x onerror=\"window.owned=1\"><b>"
BIDI = "gnp.\u202egnp.exe\u0000\x1b[31m"
LONG = MARK.encode() + b"long " * 20480
BINARY = b"\xff\xfe<script>\xc3(\x00" + bytes(range(32))

TEXT_OF = "return document.querySelector(arguments[0]).textContent"
ROWS = "return document.querySelectorAll(arguments[0] + ' tbody td:first-child button').length"
TILE = ("return [...document.querySelectorAll('.tile')].filter((t) => t.querySelector('dt')"
        ".textContent === arguments[0]).map((t) => t.querySelector('dd').textContent)[0]")
LINES = ("return [...document.querySelectorAll('#' + arguments[0] + ' path.line')]"
         ".map((p) => p.getAttribute('d').split('L').length)")


def push(store, text, *options):
    return run(DUECTL, "push", *options, store, text=text.encode()).decode().split()


def push_bytes(store, data, *options):
    with open("payload", "wb") as file:
        file.write(data)
    return run(DUECTL, "push", "--at", "2h", *options, store, "payload").decode().strip()


# ---- A queue in use ------------------------------------------------------------------------------

class Busy:
    """A queue that is served by a command, fed with a schedule, for a while."""

    def __init__(self, store):
        random.seed(4)
        push(store, "".join(f"{random.randint(2, 80) * 0.5}s reminder {i}\n" for i in range(500)),
             "--topic", "reminders")
        push(store, "".join(f"{random.randint(1, 40)}h invoice {i}\n" for i in range(1200)),
             "--topic", "invoices")
        push(store, "".join(f"{i * 60 + 600}s newsletter {i}\n" for i in range(420)),
             "--topic", "newsletter")
        push(store, "".join(f"0s webhook https://example.org/{c}\n" for c in "abc"),
             "--topic", "webhooks")
        os.mkfifo("in")
        command = "case $DUE_TEXT in webhook*) exit 1;; *) sleep 0.01;; esac"
        self.process = subprocess.Popen(
            [DUECTL, "run", "--store", store, "--control", "c", "--workers", "3", "--retry", "1ms",
             "--attempts", "2", "--exec", command, "in"], stderr=subprocess.DEVNULL)
        self.ended = threading.Event()
        self.feeder = threading.Thread(target=self.feed)
        self.feeder.start()

    def feed(self):
        count = 0
        with open("in", "w", encoding="ascii") as file:
            while not self.ended.wait(0.2):
                for _ in range(random.randint(1, 8)):
                    count += 1
                    file.write(f"{random.randint(0, 300) / 100}s order {count}\n")
                file.flush()

    def end(self):
        self.ended.set()
        self.feeder.join()
        self.process.terminate()
        self.process.wait()


def test_figures(browser):
    """Without a store there is what its owner counts."""
    web = Web(DUECTL, "--control", "c")
    browser.go(web.url)
    browser.until("return document.querySelectorAll('#topics tbody tr').length === 5")
    browser.until("return document.querySelector('#topics').textContent.includes('invoices1,200')")
    check(browser.until(TILE, "Dead") == "3", "dead")
    browser.until("return /p99 ≤[0-9]/.test(document.querySelector('#chart-late .legend')"
                  ".textContent)")
    for card in ("jobs-card", "oldest-card", "dead-card"):
        check(browser.script("return document.getElementById(arguments[0]).hidden", card), card)
    check(browser.complaints() == [], "the browser complains:", browser.complaints())
    web.stop()


def test_busy():
    """It loads, its charts move, and its picture is taken."""
    busy = Busy("busy.db")
    end = time.monotonic() + 60
    while not os.path.exists("c") and time.monotonic() < end:
        time.sleep(0.05)
    web = Web(DUECTL, "--allow-writes", "--control", "c", "busy.db")
    browser = Browser(size=(1320, 1160))
    try:
        browser.go(web.url)
        browser.until("return document.querySelector('#state').className === 'state live'")
        check("duectl" in browser.script("return document.title"), "title")
        check(browser.script(TEXT_OF, "#mode") == "changes allowed", "mode")
        names = browser.until("const t = [...document.querySelectorAll('#topics td:first-child')]"
                              ".map((c) => c.textContent); return t.length >= 5 && t")
        check(set(names) == {"–", "invoices", "newsletter", "reminders", "webhooks"}, names)
        browser.until("return document.querySelectorAll('#dead tbody button.kick').length === 3")
        check("failed" in browser.script(TEXT_OF, "#dead tbody"), "no reason of death")
        waiting = browser.until(TILE, "Waiting")
        for chart, most in (("chart-jobs", 4), ("chart-rates", 3), ("chart-late", 1)):
            before = browser.until(LINES, chart)
            check(len(before) >= most, chart, "has", before)
            browser.until(LINES.replace("return", "return Math.max(...") + ") > arguments[1]",
                          chart, max(before) + 1)
        browser.until(f"{TILE} !== arguments[1]", "Waiting", waiting)
        browser.until("return /put in[1-9].*done[1-9]/.test(document.querySelector("
                      "'#chart-rates .legend').textContent)")
        browser.until("return /p99 ≤[0-9]/.test(document.querySelector('#chart-late .legend')"
                      ".textContent)")
        browser.until("return document.querySelector('#chart-rates path.line').getAttribute('d')"
                      ".split('L').length >= 20", seconds=120)
        end = time.monotonic() + 20  # a picture with something to be seen
        while browser.script(ROWS, "#oldest") < 3 and time.monotonic() < end:
            time.sleep(0.1)
        browser.picture(PICTURE)
        check(browser.complaints() == [], "the browser complains:", browser.complaints())
        test_figures(browser)
    finally:
        browser.close()
        busy.end()
    with open(PICTURE, "rb") as file:
        head = file.read(24)
    check(head[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">I", head[16:20])[0] == 1320 and
          os.path.getsize(PICTURE) > 30000, "no picture")
    web.stop()


# ---- Whatever is in a queue ----------------------------------------------------------------------

def make_hostile(store):
    """Ids by name."""
    ids = {"script": push_bytes(store, MARK.encode(), "--topic", MARK, "--key", MARK),
           "long": push_bytes(store, LONG), "binary": push_bytes(store, BINARY),
           "bidi": push_bytes(store, BIDI[:-6].encode(), "--key", "bidi")}
    for i in range(40):
        push(store, f"3h plain {i}\n", "--topic", "plain", "--key", f"order {i}")
    dead = push(store, f"0s {MARK}\n0s second\n0s third\n", "--topic", "bad")
    with subprocess.Popen([DUECTL, "work", "--topic", "bad", "--attempts", "1", "--exec", "exit 1",
                           "--store", store], stderr=subprocess.DEVNULL) as work:
        while run(DUECTL, "dead", "ls", "--json", store).count(b"\n") < 3:
            time.sleep(0.05)
        work.terminate()
    return ids, dead


def open_job(browser, ident):
    browser.write("#find", ident)
    browser.until(f"{ROWS} === 1 && document.querySelector('#jobs tbody button').textContent === "
                  "arguments[1]", "#jobs", ident)
    browser.click("#jobs tbody button")
    browser.until("return document.querySelector('#job').open && document.querySelector("
                  "'#job-title').textContent.includes(arguments[0])", ident)
    text = browser.script(TEXT_OF, "#job-data")
    browser.click("#job-close")
    return text


def test_hostile(browser, ids):
    """All of it is text."""
    browser.until(f"{ROWS} === 25", "#jobs")
    check(MARK in browser.script(TEXT_OF, "#topics"), "the topic is not shown as text")
    check(MARK in browser.script(TEXT_OF, "#dead"), "the dead one is not shown as text")
    check(open_job(browser, ids["script"]) == MARK, "script")
    check(MARK in browser.script(TEXT_OF, "#job-fields"), "its key is not shown as text")
    check(open_job(browser, ids["long"]) == LONG.decode(), "100 kB are not shown as text")
    shown = open_job(browser, ids["binary"])
    check("ff fe 3c 73 63" in shown and "<script>" in shown, "bytes", shown)
    check("⟨U+202E⟩" in open_job(browser, ids["bidi"]), "the direction of writing is turned")
    check(browser.script("return window.owned === undefined"), "what was in a payload has run")
    check(browser.script("return document.querySelectorAll('img').length") == 1, "an image more")
    check(browser.script("return document.querySelectorAll('script:not([src]), td b').length") == 0,
          "markup of a payload")


def test_search(browser):
    browser.write("#find", "order 17")
    browser.until(f"{ROWS} === 1 && document.querySelector('#jobs').textContent"
                  ".includes('plain 17')", "#jobs")
    browser.script("const find = document.querySelector('#find'); find.value = '';"
                   "find.dispatchEvent(new Event('input'))")
    browser.until(f"{ROWS} === 25", "#jobs")
    browser.click("#jobs-pages button:nth-of-type(2)")
    browser.until("return document.querySelector('#jobs-pages').textContent.includes('26 to 47')")
    browser.script("[...document.querySelectorAll('#topics button')].find((b) => "
                   "b.textContent === 'bad').click()")
    browser.until(f"{ROWS} === 3", "#jobs")


def test_changes(browser, store, dead):
    """A click on "Kick" kicks; one on "Drop" asks first."""
    browser.click(f"#dead button.kick[data-id='{dead[1]}']")
    browser.until("return document.querySelectorAll('#dead tbody button.kick').length === 2")
    check(b'"state":"waiting"' in run(DUECTL, "show", "--json", store, dead[1]), "not kicked")
    browser.click(f"#dead button.drop[data-id='{dead[2]}']")
    browser.until("return document.querySelector('#ask').open")
    browser.click("#ask-no")
    run(DUECTL, "show", store, dead[2])
    browser.click(f"#dead button.drop[data-id='{dead[2]}']")
    browser.until("return document.querySelector('#ask').open")
    browser.click("#ask-yes")
    browser.until("return document.querySelectorAll('#dead tbody button.kick').length === 1")
    run(DUECTL, "show", store, dead[2], status=1)
    browser.click("#kick-all")
    browser.until("return document.querySelector('#dead').textContent.includes('Nothing has died')")
    check(b'"state":"waiting"' in run(DUECTL, "show", "--json", store, dead[0]), "not all kicked")


def test_policy(browser, web):
    """The browser keeps what the page promises."""
    names = browser.script("return performance.getEntriesByType('resource').map((e) => e.name)")
    check(len(names) > 5 and all(name.startswith(web.url) for name in names), "asked for", names)
    check(browser.complaints() == [], "the browser complains:", browser.complaints())
    check(browser.script("try { document.querySelector('h1').innerHTML = '<b>x</b>'; return 'set' }"
                         "catch (e) { return e.name }") == "TypeError", "text can become markup")
    check(browser.script("return fetch('http://localhost:' + arguments[0] + '/').then(() => 'got')"
                         ".catch((e) => e.name)", web.port) == "TypeError", "it can ask elsewhere")
    browser.go(f"http://elsewhere.example:{web.port}/{web.token}/")
    text = browser.script("return document.body.textContent")
    check("not its own" in text and "Jobs" not in text, "it is shown under another name:", text)


def test_read_only(store):
    web = Web(DUECTL, store)
    browser = Browser(dark=True)
    try:
        browser.go(web.url)
        browser.until("return document.querySelectorAll('#topics tbody tr').length > 1")
        check(browser.script(TEXT_OF, "#mode") == "read only", "mode")
        check(browser.script("return document.querySelectorAll('.kick, .drop, #kick-all').length")
              == 0, "buttons that change something")
        check(web.stop() == 143, "stop")
        browser.until("return document.querySelector('#state').className === 'state lost'")
    finally:
        browser.close()


# ---- Several queues ------------------------------------------------------------------------------

QUEUE_ROWS = ("return [...document.querySelectorAll('#queues tbody tr')].map((r) => "
              "[...r.children].map((c) => c.textContent))")


def test_queues():
    """A list of them, one of which is shown; names are text, and one that is away is said to be."""
    hostile = "<img src=x onerror=\"window.owned=1\">\u202eb.db"
    push("a.db", "1h first\n")
    push(hostile, "".join(f"{i}h second {i}\n" for i in range(1, 6)))
    web = Web(DUECTL, "a.db", hostile, "redis://127.0.0.1:1")
    browser = Browser()
    try:
        browser.go(web.url)
        browser.until("return document.querySelector('#state').className === 'state live'")
        browser.until("return document.querySelectorAll('#queues .tag.live').length === 2 && "
                      "document.querySelectorAll('#queues .tag.away').length === 1")
        rows = browser.script(QUEUE_ROWS)
        check([row[0] for row in rows] ==
              ["a.db", hostile.replace("\u202e", "⟨U+202E⟩"), "duectl"], rows)
        check([row[3] for row in rows] == ["1", "5", "–"], rows)
        check(rows[2][1:3] == ["127.0.0.1:1", "away"], rows)
        check(browser.script(TEXT_OF, "#queue") == "a.db", "another is shown")
        browser.until(f"{ROWS} === 1", "#jobs")
        browser.click("#queues tbody tr:nth-child(2) a")
        browser.until(f"{ROWS} === 5", "#jobs")
        check(browser.script("return location.href") == web.url + "2/", "address")
        check(browser.script("return document.querySelector('#queues a[aria-current]').textContent")
              == rows[1][0], "which is shown is not said")
        check("onerror" in browser.script(TEXT_OF, "#queue"), "the name is not shown as text")
        check(browser.script("return window.owned === undefined"), "what was in a name has run")
        check(browser.script("return document.querySelectorAll('img').length") == 1, "an image")
        push("a.db", "1h third\n")
        browser.until(f"{QUEUE_ROWS}[0][3] === '2'")
        browser.click("#queues tbody tr:nth-child(3) a")
        browser.until("return document.querySelector('#state').className === 'state lost' && "
                      "document.querySelector('#said').textContent.includes('refused')")
        browser.until("return document.querySelectorAll('#queues .tag.live').length === 2")
        browser.click("#queues tbody tr:nth-child(1) a")
        browser.until(f"{ROWS} === 2", "#jobs")
        said = [line for line in browser.complaints() if "502" not in line]
        check(said == [], "the browser complains:", said)
    finally:
        browser.close()
    check(web.stop() == 143, "stop")


def main():
    test_busy()
    test_queues()
    ids, dead = make_hostile("hostile.db")
    test_read_only("hostile.db")
    web = Web(DUECTL, "--allow-writes", "hostile.db")
    browser = Browser()
    try:
        browser.go(web.url)
        test_hostile(browser, ids)
        test_search(browser)
        test_changes(browser, "hostile.db", dead)
        test_policy(browser, web)
    finally:
        browser.close()
    check(web.stop() == 143, "stop")
    sys.exit(web_lab.failures > 0)


main()
