#!/usr/bin/env python3
"""Lists the stored jobs of a queue, and checks each record: see docs/redis-layout.md.

usage: read_queue.py SOCKET QUEUE     (a server on a UNIX socket; for TCP: HOST:PORT)
One line a job: id, due or died (or never), priority, attempts, failures, bytes, topic, payload,
key.
Exit status: 0 all of them can be read; 1 some are damaged, missing or of a later version.
"""
import datetime
import socket
import sys

at, queue = sys.argv[1], "due:{%s}:" % sys.argv[2]
if at.startswith("/"):
    line = socket.socket(socket.AF_UNIX)
    line.connect(at)
else:
    line = socket.create_connection(at.rsplit(":", 1))
answers = line.makefile("rb")


def answer():
    kind, rest = (text := answers.readline())[:1], text[1:-2]
    if kind == b"*":
        return [answer() for _ in range(int(rest))]
    if kind == b"$":
        return answers.read(int(rest) + 2)[:-2] if rest != b"-1" else None
    if kind == b"-" or not text:
        sys.exit("the server says: " + rest.decode())
    return rest


def ask(command, key, *words):
    words = [command.encode(), queue.encode() + key, *words]
    line.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    return answer()


def number(data):
    return int.from_bytes(data, "little")


def check(job, data):
    """What bytes 2 and 3 of a record or an entry must be."""
    data, total = data[:2] + job + data[4:], 0
    words = [number(data[i:i + 8]) for i in range(0, len(data) // 8 * 8, 8)]
    for word in words + [number(data[len(data) // 8 * 8:]), len(data)]:
        total = (total ^ word) * 0x9E3779B97F4A7C15 % 2**64
        total ^= total >> 29
    return (total ^ total >> 16 ^ total >> 32 ^ total >> 48) % 2**16


def is_sound(job, data):
    if data is None or len(data) < 12 or number(data[2:4]) != check(job, data):
        return False
    return data[0] == 1 and data[1] < 64


def record(data):
    """Topic, key and payload: what the flags name stands in their order."""
    flags, found, i = data[1], {}, 12
    for flag, bytes_of_length in ((1, 1), (2, 2), (4, 0), (8, 0), (16, 1), (32, 1)):
        if not flags & flag:
            continue
        if flag == 4:  # a retry policy
            i += {1: 13, 2: 21, 3: 6 + 8 * data[i + 5]}[data[i]]
        elif flag == 8:  # numbers
            i += 1 + 8 * bin(data[i] & 15).count("1")
        else:
            end = i + bytes_of_length + number(data[i:i + bytes_of_length])
            found[flag], i = data[i + bytes_of_length:end], end
    return found.get(1, b""), found.get(16, b""), data[i:]


def when(score):
    if float(score) >= 2**63 // 1000 - 1:  # or no number of nanoseconds at all
        return "never"
    since_1970 = datetime.timedelta(microseconds=max(0, int(float(score))))
    return (datetime.datetime(1970, 1, 1) + since_1970).isoformat(timespec="milliseconds") + "Z"


def show(job, score):
    data, entry = ask("HGET", b"j", job), ask("HGET", b"a", job)
    name = job.hex() + "0000"  # so the library and duectl write an id
    if not is_sound(job, data) or (entry is not None and not is_sound(job, entry)):
        print(name, "cannot be read")
        return 1
    topic, key, payload = record(data)
    attempts, failures = (number(entry[20:24]), number(entry[24:28])) if entry else (0, 0)
    print(name, when(score), 255 - job[0], attempts, failures, len(payload),
          topic.decode() or "-", payload, key.decode())
    return 0


damaged = 0
for zset in [b"t:" + topic for topic in ask("HKEYS", b"topics")] + [b"dead"]:
    members = ask("ZRANGE", zset, b"0", b"-1", b"WITHSCORES")
    for job, score in zip(members[::2], members[1::2]):
        damaged += show(job, score)
sys.exit(damaged > 0)
