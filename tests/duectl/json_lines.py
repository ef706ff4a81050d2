"""json_lines KIND [N] - look whether standard input is lines of JSON as docs/duectl.md says.

KIND is listed, told, pushed, answers:WORD, counts, processes, control, top, restored,
restored_list, verified, doctored, checked or imported; N is how many lines there must be.
"""
import json
import re
import sys

ID = re.compile(r"[0-9a-f]{28}0000")
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z|never")


def is_bytes(value):
    if isinstance(value, dict):
        return list(value) == ["base64"] and isinstance(value["base64"], str)
    return isinstance(value, str)


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def matches(pattern):
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def one_of(*words):
    return lambda value: value in words


def has(needed, allowed=None):
    """An object with all of @needed, and of @allowed any."""
    allowed = allowed or {}

    def look(value):
        if not isinstance(value, dict):
            return False
        known = dict(needed, **allowed)
        return all(name in value for name in needed) and \
            all(name in known and known[name](value[name]) for name in value)
    return look


TEXT = matches(re.compile(r"(?s).*"))
DEAD = has({"cause": one_of("buried", "attempts", "expired"), "at": matches(DATE)},
           {"reason": is_bytes})
RETRY = has({"kind": one_of("fixed", "exponential", "ladder")},
            {"attempts_max": whole, "delay_ns": whole, "cap_ns": whole,
             "rungs_ns": lambda value: isinstance(value, list) and all(map(whole, value))})
LISTED = has({"state": one_of("waiting", "reserved", "dead"), "id": matches(ID),
              "topic": is_bytes, "deadline": matches(DATE), "data": is_bytes},
             {"until": matches(DATE), "priority": whole, "attempts": whole, "failures": whole,
              "headers": is_bytes, "key": is_bytes, "keep_key_ns": whole, "group": is_bytes,
              "retry": RETRY, "ttl_ns": whole, "expires": matches(DATE), "every_ns": whole,
              "repeat": one_of("once", "after"), "dead": DEAD})
# What an owner tells of a job, which may be in memory alone.
TOLD = has({"state": one_of("waiting", "dead"), "id": matches(re.compile(r"[0-9a-f]{32}")),
            "topic": is_bytes, "deadline": matches(DATE), "data": is_bytes},
           {"bytes": whole, "priority": whole, "attempts": whole, "failures": whole,
            "key": is_bytes, "dead": DEAD})
PUSHED = has({"line": whole, "id": matches(ID), "deadline": matches(DATE)})
NUMBERS = {name: whole for name in ("waiting", "due", "reserved", "dead", "bytes")}
COUNT = has(dict(NUMBERS, queue=TEXT), {"topic": is_bytes, "oldest_due": matches(DATE),
                                        "next": matches(DATE),
                                        "paused": lambda value: value is True,
                                        "limit": lambda value: whole(value) and value > 0})
OWNER = has({"queue": TEXT, "host": TEXT, "pid": whole})
PROCESS = has({"queue": TEXT, "number": whole, "host": TEXT, "pid": whole, "started": matches(DATE),
               "seen": matches(DATE), "held": whole, "waits": lambda value: isinstance(value, bool),
               "evicted": lambda value: isinstance(value, bool)})
ERROR = matches(re.compile(r"DUE_E[A-Z]+"))


def each(look):
    return lambda value: isinstance(value, list) and all(map(look, value))


def rate(value):
    return isinstance(value, float) and value >= 0


GONE = ("enqueued", "dequeued", "acked", "failed")
NOW = {name: whole for name in ("waiting", "ready", "leased", "dead")}
HISTOGRAM = has({"count": whole, "buckets": each(has({"count": whole}, {"below_ns": whole}))})


def top(came, more, allowed):
    """A line of `top`; @came are the names of its counts that only rise."""
    counts = dict(NOW, **{name: whole for name in came})
    often = {"overdue_ns": whole, "rates": has({name: rate for name in came})}
    topic = has({"topic": is_bytes}, dict(counts, **often))
    return has(dict(counts, queue=is_bytes, at=matches(DATE), topics=each(topic), **more),
               dict(often, topics_more=whole, **allowed))


WORKERS = has(dict({name: whole for name in ("threads", "running", "idle", "ahead", "handled",
                                             "lost")}, name=is_bytes))
TOP_FILE = top(GONE, {"pid": lambda value: isinstance(value, int), "age_ns": whole,
                      "state": one_of("alive", "silent", "closed"), "workers": each(WORKERS)},
               {"late": HISTOGRAM, "store": ERROR})
TOP_STORE = top(("came", "left", "failed"), {"overdue": HISTOGRAM}, {"next_in_ns": whole})


OWNED = {"queue": TEXT, "pid": whole, "store": lambda word: word == "DUE_OK" or ERROR(word),
         **{name: whole for name in ("waiting", "ready", "reserved", "dead")}}


def is_of_owner(value):
    """What the owner of a queue has counted: numbers, whatever they are called."""
    return isinstance(value, dict) and \
        has(OWNED, {name: whole for name in value if name not in OWNED})(value)


def flag(value):
    return isinstance(value, bool)


def only(value):
    return lambda given: given == value


OF_QUEUE = has({"queue": TEXT, "shared": flag, "jobs": whole, "dead": whole, "aside": whole},
               {"owner": TEXT, "processes": whole, "kept_keys": whole})
SUM = {"jobs": whole, "first": matches(DATE), "last": matches(DATE), "tried": whole, "most": whole,
       "leased": whole, "unreadable": whole}
SUMS = (has(dict(SUM, topic=is_bytes)), has(dict(SUM, state=only("dead"))))
RESTORED_JOB = has({"id": matches(ID), "priority": whole, "attempts": whole, "failures": whole,
                    "bytes": whole, "topic": is_bytes, "text": TEXT},
                   {"due": matches(DATE), "died": matches(DATE), "reason": is_bytes,
                    "cause": one_of("buried", "attempts", "expired")})
FOUND = has({"wrong": one_of("job", "topic", "key", "page", "names", "file", "jobs", "keys"),
             "text": TEXT}, {"id": matches(re.compile(r"[0-9a-f]{32}")), "name": is_bytes,
                             "count": whole})
NUMBERS_FOUND = has({"whole": flag, "records": whole, "wrong": whole, "repaired": whole},
                    {"pages": flag, "readable": flag,
                     **{name: whole for name in (
                         "members", "topics", "dead", "entries", "out", "aside", "keys",
                         "kept_keys", "lost_keys", "unused_topics")}})
OTHERS = {
    "restored": (OF_QUEUE, *SUMS, has({"hidden": whole})),
    "restored_list": (RESTORED_JOB, has({"hidden": whole})),
    "verified": (FOUND, NUMBERS_FOUND),
    "doctored": (has({"check": TEXT, "result": one_of("ok", "change", "note"), "text": TEXT}),
                 has({"changes": whole})),
    "checked": (has({"line": whole, "column": whole, "text": TEXT}),
                has({"lines": whole, "jobs": whole, "faults": whole})),
    "imported": (has({"line": whole, "column": whole, "text": TEXT}),
                 has({"source": TEXT, "text": TEXT}), has({"left": TEXT, "count": whole}),
                 has({"left": TEXT, "of_jobs": whole}),
                 has({"complete": flag}),
                 has({"complete": flag, "jobs": whole, "kept_keys": whole, "before": whole})),
}


def is_line(kind, value):
    if kind in OTHERS:
        return any(look(value) for look in OTHERS[kind])
    if kind == "control":
        return is_of_owner(value)
    if kind == "listed":
        return LISTED(value)
    if kind == "told":
        return TOLD(value)
    if kind == "pushed":
        return PUSHED(value)
    if kind == "counts":
        return COUNT(value)
    if kind == "processes":
        return OWNER(value) or PROCESS(value)
    if kind == "top":
        return TOP_FILE(value) or TOP_STORE(value)
    done = kind.split(":")[1]
    return has({done: whole})(value) or \
        has({"id": matches(re.compile(r"[0-9a-f]{32}")),
             "result": lambda word: word == done or ERROR(word)})(value) or \
        has({"number": whole, "result": lambda word: word == done or ERROR(word)})(value)


def main():
    lines = sys.stdin.buffer.read().split(b"\n")
    if lines.pop() != b"":
        sys.exit("the last line does not end")
    if len(sys.argv) > 2 and len(lines) != int(sys.argv[2]):
        sys.exit(f"{len(lines)} lines, not {sys.argv[2]}")
    for line in lines:
        text = line.decode("utf-8")
        value = json.loads(text, object_pairs_hook=lambda pairs: dict(pairs)
                           if len(dict(pairs)) == len(pairs) else sys.exit("a name twice"))
        if not is_line(sys.argv[1], value):
            sys.exit(f"this is no line of {sys.argv[1]}: {text}")


main()
