"""The file in which a program shows the figures of a queue: due/figures.h."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Dict, Optional, Type, Union

from ._native import FOREVER_NS, ffi, lib, text_of

MAGIC, VERSION = b"duefigs\0", 1
HEAD, SET = ffi.sizeof("struct due_figures_head"), ffi.sizeof("struct due_figures")
NUMBER = ffi.offsetof("struct due_figures_head", "number")
TRIES, PAUSE = 100, 0.005  # to read a set that is not written over meanwhile
FLOCK = "@hhqqi0q"  # struct flock


@dataclass(frozen=True)
class FigureSet:
    """What a queue had done and held at one moment.  Times that are not since 1970 are of the
    queue's clock."""

    number: int
    pid: int
    queue: str
    opened_ns: int  # the file was; since 1970
    written_ns: int  # this was; since 1970
    now_ns: int
    oldest_ns: Optional[int]  # of what is ready; None: nothing is
    closed: bool  # and there will be no other set
    measured: bool  # topics and lateness are there
    stored: bool
    stats: Dict[str, int]  # by the names of struct due_stats
    topic_count: int  # of all, also those that are not in topics
    topics: Dict[str, Dict[str, int]]  # by the names of struct due_topic_stats
    pools: Dict[str, Dict[str, int]]  # by the names of struct due_workers_stats
    _late: Any

    def late_ns(self, part: float) -> int:
        """How late that part of all jobs was at most when they were handed out: 0.99 of them."""
        return int(lib.due_histogram_quantile(self._late, part))


class Figures:
    """The file of figures that is at this path now.  It may be read as often as one likes: the
    program does not notice.

    An OSError says that it cannot be opened, a ValueError that it is something else.
    """

    def __init__(self, path: Union[str, bytes, "os.PathLike[str]"]) -> None:
        self._fd = -1
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            self.head()
        except (OSError, ValueError):
            self.close()
            raise

    def close(self) -> None:
        """Let go of it."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> Figures:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Does a program write it?"""
        lock = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        found = fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, lock)
        return bool(struct.unpack(FLOCK, found)[0] == fcntl.F_WRLCK)

    def head(self) -> Dict[str, int]:
        """What it begins with: its version, and the number of the set that was written last."""
        data = self._bytes(HEAD, 0)
        raw = ffi.from_buffer("struct due_figures_head[]", data)[0]
        if ffi.buffer(raw.magic)[:] != MAGIC:
            raise ValueError("this is no file of figures")
        if (raw.version, raw.head_bytes, raw.set_bytes) != (VERSION, HEAD, SET):
            raise ValueError("its figures are those of another version")
        return numbers(raw, "struct due_figures_head", "magic")

    def read(self) -> FigureSet:
        """The set that was written last, whole."""
        for _ in range(TRIES):
            found = self._try()
            if found is not None:
                return found
            time.sleep(PAUSE)
        raise ValueError("there are no figures in it")

    def _try(self) -> Optional[FigureSet]:
        """None: it was written over meanwhile, or there is none."""
        order = threading.Lock()
        order.acquire()
        number = self.head()["number"]
        fence(order)  # B1 of figures_file.c
        data = self._bytes(SET, HEAD + number % 2 * SET)
        fence(order)  # B2
        again = int.from_bytes(self._bytes(8, NUMBER), sys.byteorder)
        return set_of(data, number) if number == again != 0 else None

    def _bytes(self, size: int, at: int) -> bytes:
        data = os.pread(self._fd, size, at)
        if len(data) != size:
            raise ValueError("this is no file of figures" if at == 0 else "it is too short")
        return data


def fence(order: threading.Lock) -> None:
    """What was read before was read before what is read after."""
    order.release()
    order.acquire()


def numbers(raw: Any, kind: str, *without: str) -> Dict[str, int]:
    """The fields of a struct that are numbers."""
    return {name: int(getattr(raw, name)) for name, _ in ffi.typeof(kind).fields
            if name != "reserved" and name not in without}


def set_of(data: bytes, number: int) -> FigureSet:
    """Nothing in it is believed."""
    sets = ffi.from_buffer("struct due_figures[]", data)
    raw = sets[0]
    if (raw.number != number or raw.topics_here > min(len(raw.topic), raw.topics)
            or raw.pools_here > len(raw.pool)):
        raise ValueError("its figures make no sense")
    late = ffi.new("due_histogram *", raw.late)
    late.count = sum(late.bucket) % 2 ** 64
    return FigureSet(
        number=number, pid=raw.pid, queue=text_of(raw.queue), opened_ns=raw.opened_ns,
        written_ns=raw.written_ns, now_ns=raw.now_ns,
        oldest_ns=None if raw.oldest_ns == FOREVER_NS else raw.oldest_ns,
        closed=raw.closed != 0, measured=raw.measured != 0, stored=raw.stored != 0,
        stats=numbers(raw.stats, "struct due_stats"), topic_count=raw.topics,
        topics={text_of(each.name): numbers(each.stats, "struct due_topic_stats")
                for each in raw.topic[0:raw.topics_here]},
        pools={text_of(each.name): numbers(each.stats, "struct due_workers_stats")
               for each in raw.pool[0:raw.pools_here]},
        _late=late)
