"""control_push.py - who is not as duectl is, at either end of a control socket, for
cli_control_push.sh.

usage: control_push.py bad | slow | crowd | memory PID | owners DUECTL | later DUECTL

The socket is c, in the working directory.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time


def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect("c")  # waits, as long as it has no time limit
    s.settimeout(60)
    return s


def answer_of(s):
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    return [json.loads(line) for line in got.splitlines()]


def ask(request, cut=False):
    s = connect()
    try:
        s.sendall(request)
        if cut:
            s.shutdown(socket.SHUT_WR)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return answer_of(s)


def put(*jobs, more=b""):
    return b'{"verb":"put",' + more + b'"jobs":[' + b",".join(jobs) + b"]}\n"


def job(length, text=b""):
    return b'{"at_ns":9000000000000000000,"len":%d%s}' % (length, text)


def check(answer, end, fault=None):
    assert answer and answer[-1] == {"end": end}, (answer, end)
    if fault is not None:
        assert len(answer) == 2 and fault in answer[0]["fault"], (answer, fault)


def stats():
    began = time.monotonic()
    check(ask(b'{"verb":"stats"}\n'), "DUE_OK")
    return time.monotonic() - began


def bad():
    wrong = [
        put(), put(b""), put(b"{}"), put(b"1"), b'{"verb":"put"}\n', b'{"verb":"put","jobs":1}\n',
        b'{"verb":"stats","jobs":[' + job(0) + b"]}\n",
        put(job(0), more=b'"ids":[],'), put(job(0), more=b'"at_ns":1,'),
        put(job(0, b',"len":0')), put(job(0, b',"none":0')), put(b'{"len":1}'),
        put(b'{"at_ns":1}'), put(b'{"at_ns":-1,"len":0}'), put(b'{"at_ns":1,"len":-1}'),
        put(job(2**30 + 1)), put(job(2**64)), put(job(2**63 - 1)),
        put(job(2**30), job(1)), put(*[job(2**30)] * 17),
        put(job(0, b',"priority":256')), put(job(0, b',"priority":-1')),
        put(job(0, b',"key":""')), put(job(0, b',"key":"%s"' % (b"k" * 256))),
        put(job(0, b',"group":""')), put(job(0, b',"group":"%s"' % (b"k" * 256))),
        put(job(0, b',"headers":""')), put(job(0, b',"headers":"%s"' % (b"k" * 257))),
        put(job(0, b',"on_key":"none"')), put(job(0, b',"on_key":1')),
        put(job(0, b',"ttl_ns":9223372036854775808')), put(*[job(0)] * 33),
        put(job(0), more=b'"topic":"\\u0000",'), put(job(0), more=b'"topic":"%s",' % (b"t" * 256)),
    ]
    for request in wrong:
        answer = ask(request)
        check(answer, "DUE_EINVAL")
        assert len(answer) == 2 and answer[0]["byte"] > 0, (request, answer)
    check(ask(put(*[job(0)] * 33)), "DUE_EINVAL", "more than 32 jobs")
    check(ask(b"{" + b" " * 70000), "DUE_ELIMIT", "too long")
    # Less than was said, at each place; not more than was said.
    for sent in (0, 1, 99, 100000):
        check(ask(put(job(100001)) + b"x" * sent, cut=True), "DUE_EINVAL", "cut off")
    check(ask(put(job(3), job(4)) + b"abcdef", cut=True), "DUE_EINVAL", "cut off")
    assert ask(put(job(1))[:-1], cut=True) == []
    answer = ask(put(job(3), job(4)) + b"abcdefg" + b"x" * 100)
    check(answer, "DUE_OK")
    assert [a["result"] for a in answer[:-1]] == ["DUE_OK"] * 2, answer
    # In pieces, of a byte each; and somebody who goes before the answer.
    s = connect()
    for byte in put(job(3)) + b"abc":
        s.sendall(bytes([byte]))
    check(answer_of(s), "DUE_OK")
    for _ in range(50):
        s = connect()
        s.sendall(b'{"verb":"metrics"}\n')
        s.close()
    # One that does not read its answer.
    silent = connect()
    silent.sendall(b'{"verb":"metrics"}\n')
    stats()


def slow():
    """Others are served at once; who says nothing is given up, and told so."""
    began = time.monotonic()
    idle = [connect() for _ in range(4)]
    idle[1].sendall(b'{"verb":')
    idle[2].sendall(put(job(1000)) + b"x" * 999)
    idle[3].sendall(put(job(10)))
    for _ in range(100):
        stats()
    assert time.monotonic() - began < 4.5, "slow ones hold up others"
    for s, fault in zip(idle, ("in time",) * 4):
        check(answer_of(s), "DUE_EINVAL", fault)


def crowd():
    """More than there are places for: all are served in the end."""
    idle = [connect() for _ in range(16)]
    stats()
    for s in idle:
        s.close()
    threads = [threading.Thread(target=stats) for _ in range(30)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def resident(pid):
    with open("/proc/%s/statm" % pid, encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(pid):
    """Memory is not had for what is only said, and is given back."""
    before = resident(pid)
    idle = [connect() for _ in range(10)]
    for s in idle:
        s.sendall(put(job(2**30)) + b"x" * 1000)
    stats()
    assert resident(pid) < before + (64 << 20), "memory for payloads that have not come"
    for s in idle:
        s.close()
    piece = b"x" * (1 << 20)
    s = connect()
    s.sendall(put(job(2**30)))
    for _ in range(100):
        s.sendall(piece)
    s.close()
    for _ in range(2000):
        if resident(pid) < before + (64 << 20):
            return
        time.sleep(0.01)
    raise AssertionError("memory of one who has gone")


def take_request(s):
    got = b""
    while b"\n" not in got:
        got += s.recv(65536)
    line, body = got.split(b"\n", 1)
    left = sum(j["len"] for j in json.loads(line)["jobs"]) - len(body)
    while left > 0:
        left -= len(s.recv(left))


def owners(duectl):
    """Each owner has its answers, a connection each; duectl has a status and words for that."""
    done = b'{"id":"ff000000000001000000000000010000","result":"DUE_OK"}\n'
    other = b'{"id":"ff000000000001000000000000020000","result":"DUE_OK"}\n'
    full, fine = b'{"end":"DUE_EAGAIN"}\n', b'{"end":"DUE_OK"}\n'
    cases = [
        # the answers; the status; how many ids; a word
        ([full, full, done + full, other + fine], 0, 2, ""),
        ([done + b'{"end":"DUE_ETIMEDOUT"}\n', other + fine], 0, 2, ""),
        ([done + other + fine], 0, 2, ""),
        ([done + fine], 3, 1, "no sense"),
        ([done + other + done + fine], 3, 2, "no sense"),
        ([done], 3, 1, "cut off"),
        ([b""], 3, 0, "not sure"),
        ([b"x\n"], 3, 0, "no sense"),
        ([done.replace(b"ff", b"zz", 1) + fine], 3, 0, "no sense"),
        ([done.replace(b"DUE_OK", b"DUE_NONE") + fine], 3, 0, "no sense"),
        ([b'{"end":"DUE_NONE"}\n'], 3, 0, "no sense"),
        ([done + b'{"end":"DUE_EINDOUBT"}\n'], 3, 1, "not sure what is stored"),
        ([done + b'{"end":"DUE_ESTORE"}\n'], 3, 1, "not sure what is stored"),
        ([done + b'{"end":"DUE_ENOTSUP"}\n'], 1, 1, ":2:1: not stored: not supported"),
        ([b'{"fault":"no"}\n{"end":"DUE_EINVAL"}\n'], 3, 0, "owner says"),
        ([done.replace(b"DUE_OK", b"DUE_EINDOUBT") + b'{"end":"DUE_EINDOUBT"}\n'], 3, 0,
         ":1:1: sent to the store, and no answer in time: ff000000000001000000000000010000"),
    ]
    for answers, status, ids, word in cases:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("c")
        listener.listen(8)

        def serve(listener=listener, answers=answers):
            for answer in [None] + answers:  # the first only looks whether anybody is there
                s, _ = listener.accept()
                if answer is not None:
                    take_request(s)
                    s.sendall(answer)
                s.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        p = subprocess.run([duectl, "push", "--control", "c"], input=b"1h one\n1h two\n",
                           capture_output=True, timeout=60, check=False)
        assert p.returncode == status, (answers, p)
        assert len(p.stdout.splitlines()) == ids, (answers, p)
        assert word in p.stderr.decode(), (answers, p)
        thread.join()
        listener.close()
        os.unlink("c")


def later(duectl):
    """An owner that says more than duectl knows, before and behind what it does know."""
    one = "ff000000000001000000000000010000"
    more = b'"later":{"a":[1,{"b":null}],"c":"}"},'
    behind = b',"new":[-1.5e-3,true,[],{}]}\n'
    end = b'{"end":"DUE_OK"' + behind
    result = b"{" + more + b'"id":"' + one.encode() + b'","result":"DUE_OK"' + behind
    count = b"{" + more + b'"count":3' + behind
    head = b"{" + more + b'"queue":"q","now_ns":5,"wall_ns":5' + behind
    told = (b"{" + more + b'"id":"' + one.encode() + b'","state":"waiting","topic":"","at_ns":9,'
            b'"priority":0,"len":3,"data":"tea"' + behind)
    queue = b"{" + more + b'"queue":"q","pid":7' + behind
    cases = [
        (["cancel", one], result, "cancelled 1"),
        (["dead", "kick", one], result, "kicked 1"),
        (["promote", one], result, "promoted 1"),
        (["reschedule", one, "1h"], result, "rescheduled 1"),
        (["clear", "--yes"], count, "cleared 3"),
        (["push", "--at", "1h"], result, one),
        (["stats"], b"{" + more + b'"waiting":3,"store":"DUE_OK"' + behind, "waiting    3\nstore"),
        (["metrics"], b"{" + more + b'"metrics":"due_x 1\\n"' + behind, "due_x 1"),
        (["ls", "--state", "waiting"], head + told, "tea"),
        (["show", one], head + told, "text       tea"),
        (["ps"], queue, " q"),
    ]
    for words, answer, word in cases:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("c")
        listener.listen(8)

        def serve(listener=listener, answer=answer):
            asked = b""
            while not asked:  # one may only look whether anybody is there
                s, _ = listener.accept()
                asked = s.recv(65536)
                if asked:
                    s.sendall(answer + end)
                s.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        p = subprocess.run([duectl] + words + ["--control", "c"], input=b"", capture_output=True,
                           timeout=60, check=False)
        assert p.returncode == 0 and word in p.stdout.decode(), (words, p)
        thread.join()
        listener.close()
        os.unlink("c")


globals()[sys.argv[1]](*sys.argv[2:])
