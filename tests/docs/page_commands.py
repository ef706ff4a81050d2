"""page_commands SOURCE BUILD SCRATCH - runs the commands in the blocks of docs/*.md, as a reader
types them, beside the server at $REDIS_SOCKET, which it empties before each block.

Each block begins in a new directory.  What a command needs there, and what it is to do, is said in
HOW by its beginning; one that is not there is an error, as is an entry that no page needs any more.
Names of servers, sockets, logs, ports and processes are replaced by those that there are.
"""
import collections
import os
import re
import signal
import subprocess
import sys
import time

SOURCE, BUILD, SCRATCH = sys.argv[1:4]
SOCKET = os.environ["REDIS_SOCKET"]
os.environ.pop("DUE_STORE_URL", None)
DUECTL = f"{BUILD}/duectl"
FOREIGN = f"{SOURCE}/tests/duectl/foreign"
SECONDS = 120

# Who runs the blocks of a page, if not this.
ELSEWHERE = {"install.md": "tools/clean", "python.md": "tools/clean"}

# What is not run, and why.
LEFT_OUT = {
    "build/release/duectl bench": "it measures for minutes; cli_bench sees that it begins",
}

INSTEAD = [("redis://localhost:6379", f"unix://{SOCKET}"),
           ("redis://localhost/1", f"'unix://{SOCKET}?db=1'"),
           ("redis://localhost", f"unix://{SOCKET}"), ("/run/mail.sock", "mail.sock"),
           ("/tmp/served", "served"), ("--listen 9464", "--listen 0"),
           ("/var/log/apache2/access.log", "access.log")]

failures = 0


def check(fine, *what):
    global failures
    if not fine:
        failures += 1
        print("FAILED:", *what, flush=True)
    return fine


# ---- What is there before ------------------------------------------------------------------------

def write(name, text, mode=0o644):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, mode)


def duectl(*arguments, text=""):
    return subprocess.run([DUECTL, *arguments], input=text, text=True, check=True, timeout=SECONDS,
                          stdout=subprocess.PIPE).stdout


def redis(text):
    subprocess.run(["redis-cli", "-s", SOCKET], input=text, text=True, check=True,
                   stdout=subprocess.DEVNULL)


def command(name, body):
    """A program that stands for one that is not to be asked in earnest."""
    write(f"bin/{name}", f"#!/bin/sh\n{body}\n", 0o755)


def push(store, text, *options):
    duectl("push", *options, store, text=text)


def dead(store):
    """A job that was tried four times there, in vain."""
    push(store, "0s bad\n", "--topic", "bad")
    with subprocess.Popen([DUECTL, "work", "--topic", "bad", "--retry", "1ms", "--attempts", "4",
                           "--exec", "exit 1", "--store", store],
                          stderr=subprocess.DEVNULL) as work:
        while '"dead"' not in duectl("ls", "--json", "--topic", "bad", store):
            time.sleep(0.05)
        work.terminate()


def jobs(store="jobs.db", *options):
    """The first two have the ids that the pages name."""
    push(store, "1h the tea\n2h the egg\n", *options)
    push(store, "3h a letter\n", "--topic", "mail", *options)


def at_server(*options):
    return lambda: jobs(f"unix://{SOCKET}", *options)


def files(**texts):
    return lambda: [write(name.replace("_", "."), text) for name, text in texts.items()]


def foreign(kind, name="", of=""):
    def fill():
        with open(f"{FOREIGN}/{kind}.redis", encoding="utf-8") as file:
            redis(file.read().replace(of, name) if of else file.read())
    return fill


def show_figures():
    """A running program; its process is the one that is named."""
    program = subprocess.Popen([f"{BUILD}/tests/show_figures", "orders.figures", "orders"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdin.write(b"put 3\n")
    program.stdin.flush()
    program.stdout.readline()  # it says that it is done when the figures show it
    running.append(program)
    replaced.append(("4242", str(program.pid)))


# ---- What each is to do --------------------------------------------------------------------------

How = collections.namedtuple("How", "before status said file stays again",
                             defaults=((), 0, "", "", False, False))

S_DUE = "0s the egg\n100ms the tea\n"
LOG = ('127.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 1\n'
       '127.0.0.1 - - [01/Jan/2026:00:00:01 +0000] "GET /tea HTTP/1.1" 200 1\n')
ID = "[0-9a-f]{32}"

# By the beginning of a command: what is done @before, how it ends, what it must have @said (a
# pattern) and be in a file ("name: pattern").  One that @stays is ended behind its block, once that
# is so; what is to be so some time is asked @again.
HOW = {
    "duectl run --exec 'curl": How(
        (files(hooks_due="0s one\n10ms two\n"), lambda: command("curl", "cat >>hooked")),
        file="hooked: one.*two|two.*one"),  # four workers: either is faster
    "duectl work --store redis://localhost --queue mail --topic newsletter": How(
        (lambda: command("sendmail", "cat >>sent"),
         lambda: push(f"unix://{SOCKET}", "0s hello\n", "--queue", "mail", "--topic",
                      "newsletter")), file="sent: hello", stays=True),
    "echo '0s the tea' | duectl push --shared": How(said=f"^{ID}\n$"),
    "duectl work --shared": How(file="served: the tea", stays=True),
    "duectl ps": How(said=r"waits\n.*waits\n", again=True),
    "duectl run --replay": How((files(access_log=LOG),), said=r"GET /tea.*\n(.*\n)*lines +2 read"),
    "duectl run --store jobs.db --ack-lines": How((files(s_due=S_DUE),),
                                                  said="(?s)ack 2.*the tea"),
    "duectl run --store jobs.db <": How(said="^$"),
    "duectl run --store redis://localhost --ack-lines": How((files(s_due=S_DUE),),
                                                            said="(?s)ack 2.*the tea"),
    "duectl run --store redis://localhost <": How(),
    "duectl ls --state dead": How((lambda: dead("jobs.db"),), said=f"^{ID} +dead .*bad"),
    "duectl ls --json redis": How((lambda: dead(f"unix://{SOCKET}"),), said=f"^{ID}\n$"),
    "echo '1h30m the tea' | duectl push": How(said=f"^{ID}\n$"),
    "duectl push --at": How((files(invoice_pdf="%PDF\n"),), said=f"^{ID}\n$"),
    "duectl show jobs.db": How((jobs,), said="the egg"),
    "duectl show --data": How(file="payload: ^the egg$"),
    "duectl ls --topic mail jobs.db | duectl cancel": How(said="^cancelled 1$"),
    "duectl reschedule": How(said="^rescheduled 1$"),
    "duectl work --store jobs.db --control": How(
        (jobs, lambda: command("sendmail", "cat >>sent")), file="mail.sock: ", stays=True),
    "echo '10m to=you' | duectl push --control": How(said=f"^{ID}\n$"),
    "duectl ls --control": How(said=f"^{ID} +waiting .*to=you"),
    "duectl pause --control": How(),
    "duectl cancel --control": How(said="^cancelled 1$"),
    "duectl export jobs.db": How((jobs,), file="jobs.jsonl: the egg"),
    "sqlite3 jobs.db": How((jobs,), said="the egg"),
    "duectl import --queue mail redis": How(said="put +3 jobs"),
    "duectl export --salvage": How((jobs,), said="put +3 jobs"),
    "duectl import --from asynq --source redis://localhost jobs.db": How(
        (foreign("asynq"),), status=1, said="put +[1-9]"),
    "duectl import --from bullmq --source redis://localhost --source-queue mail redis": How(
        (foreign("bullmq"),), status=1, said="put +[1-9]"),
    ". <(duectl completion bash)": How(),
    "duectl top --pid": How((show_figures,), said="orders", stays=True),
    "duectl web jobs.db mail.db": How((lambda: jobs("mail.db"),), said="^http://", stays=True),
    "duectl web jobs.db": How((jobs,), said="^http://", stays=True),
    "duectl web --queue": How((at_server("--queue", "mail"), at_server("--queue", "news")),
                              said="^http://", stays=True),
    "duectl metrics --listen": How((jobs,), said="metrics at", stays=True),
    "printf '1 tea": How(status=1, said="(?s)expected a unit.*egg"),
    "duectl import --from asynq --source redis://localhost:6379": How(
        (foreign("asynq"),), status=1, said="put +[1-9]"),
    "duectl import --from bullmq --source redis://localhost:6379": How(
        (foreign("bullmq"),), status=1, said="put +[1-9]"),
    "duectl import --from delayqueue --source redis://localhost:6379": How(
        (foreign("delayqueue", "example", "orders"),), said="put +[1-9]"),
}

# ---- A block -------------------------------------------------------------------------------------

running = []
replaced = []
used = set()


def entry_of(text, table):
    """The longest beginning that fits."""
    fitting = [key for key in table if text.startswith(key)]
    return max(fitting, key=len, default=None)


def is_so(how, said):
    if how.file:
        name, pattern = how.file.split(": ", 1)
        if not os.path.exists(name):
            return False
        if not pattern:
            return True
        with open(name, encoding="utf-8", errors="replace") as file:
            return re.search(pattern, file.read(), re.S) is not None
    return re.search(how.said, said, re.M) is not None


def said_so_far(name):
    with open(name, encoding="utf-8", errors="replace") as file:
        return file.read()


def wait_for(where, process, how, name):
    """Until it has done what it is to do."""
    end = time.monotonic() + SECONDS
    while not is_so(how, said_so_far(name)) and time.monotonic() < end:
        if process.poll() is not None:
            break
        time.sleep(0.05)
    check(is_so(how, said_so_far(name)), where, "does not do what it is to:", said_so_far(name))


def start(line, name):
    with open(name, "wb") as said:
        process = subprocess.Popen(["bash", "-c", "set -o pipefail\n" + line], stdout=said,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True)
    running.append(process)
    return process


def run_once(where, line, how, name):
    """Has it done what it is to do?"""
    try:
        status = start(line, name).wait(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        status = "nothing in time"
    check(status == how.status, where, "ends with", status, said_so_far(name))
    return is_so(how, said_so_far(name))


def run(where, text, how, name):
    for before in how.before:
        before()
    line = text.rstrip("&")
    for what, by in INSTEAD + replaced:
        line = line.replace(what, by)
    if how.stays:
        wait_for(where, start(line, name), how, name)
        return
    end = time.monotonic() + SECONDS
    fine = run_once(where, line, how, name)
    while how.again and not fine and time.monotonic() < end:
        time.sleep(0.05)
        fine = run_once(where, line, how, name)
    check(fine, where, "does not do what it is to:", said_so_far(name))


def end_all():
    for process in reversed(running):
        try:
            if process.poll() is None and process.stdin is None:
                os.killpg(process.pid, signal.SIGTERM)
            elif process.stdin is not None:
                process.stdin.close()
            process.wait(timeout=SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
    running.clear()
    replaced.clear()


def commands_of(block):
    """Each as one line, and what follows it."""
    found = []
    if "$ " not in block:
        return [(line, []) for line in block.replace("\\\n", "").splitlines()]
    for line in block.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append([re.sub(" +", " ", line[2:]), []])
        elif found:
            found[-1][1].append(line)
    return found


def masked(text):
    return re.sub(r"\d+", "N", re.sub(ID, "T", text))


def run_block(where, block):
    directory = f"{SCRATCH}/{len(os.listdir(SCRATCH))}"
    os.makedirs(f"{directory}/bin")
    os.chdir(directory)
    os.environ["PATH"] = f"{directory}/bin:{BUILD}:{PATH}"
    redis("flushall\n")
    for number, (text, shown) in enumerate(commands_of(block)):
        place = f"{where}: {text}:"
        out = entry_of(text, LEFT_OUT)
        key = entry_of(text, HOW)
        if out is not None:
            used.add(out)
            print(f"left out: {place} {LEFT_OUT[out]}")
        elif check(key is not None, place, "who runs this?"):
            used.add(key)
            name = f"said.{number}"
            run(place, text, HOW[key], name)
            if shown and not text.startswith("duectl top"): # that is as a terminal shows it
                check(masked(said_so_far(name)) == masked("\n".join(shown) + "\n"), place,
                      "does not print what follows it, but", said_so_far(name))
    end_all()
    os.chdir(SCRATCH)


PATH = os.environ["PATH"]


def main():
    pages = blocks = 0
    for root, _, names in sorted(os.walk(f"{SOURCE}/docs")):
        for name in sorted(names):
            if not name.endswith(".md") or name in ELSEWHERE:
                continue
            with open(os.path.join(root, name), encoding="utf-8") as file:
                text = file.read()
            found = list(re.finditer(r"^```(?:console|sh)\n(.*?)^```", text, re.S | re.M))
            pages += bool(found)
            for block in found:
                blocks += 1
                where = f"{name}:{text[:block.start()].count(chr(10)) + 1}"
                run_block(where, block[1])
    for key in set(HOW) | set(LEFT_OUT):
        check(key in used, "no page has this any more:", key)
    print(f"{blocks} blocks of {pages} pages")
    sys.exit(failures > 0)


main()
