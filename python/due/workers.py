"""Pools of threads that take jobs and hand each to a function."""

from __future__ import annotations

import atexit
import logging
import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Dict, Optional, Sequence, Type, Union

from . import errors
from ._native import Seconds, check, ffi, lib, span_ns, timeout_ns
from .job import Job
from .queue import Queue

LOG = logging.getLogger("due")
LIVE: "weakref.WeakSet[Workers]" = weakref.WeakSet()


@dataclass(frozen=True)
class Answer:
    """What becomes of a job: made by ack(), nack(), snooze() or bury()."""

    kind: int
    delay: Optional[Seconds] = None
    why: str = ""


def ack() -> Answer:
    """It is done; the same as no answer."""
    return Answer(lib.DUE_ANSWER_ACK)


def nack(delay: Optional[Seconds] = None) -> Answer:
    """It has failed: again after this delay, or as its retry policy says."""
    return Answer(lib.DUE_ANSWER_NACK, delay)


def snooze(delay: Seconds) -> Answer:
    """Not now: again after this delay, and it has not failed."""
    return Answer(lib.DUE_ANSWER_SNOOZE, delay)


def bury(why: str = "") -> Answer:
    """Never again."""
    return Answer(lib.DUE_ANSWER_BURY, why=why)


class WorkerJob(Job):
    """The job that a handler is given: it answers by what it returns, not by the verbs of the
    job, which are refused.  After the call it is bytes, and `stopping` is true."""

    def _mine(self) -> Any:
        raise errors.InvalidError("a handler answers by what it returns", lib.DUE_EINVAL)

    def _let_go(self) -> None:  # it is the pool's
        pass


class Workers:
    """A pool: `handler` is called with each job, in one of `threads` threads.

    It returns an answer, or nothing, which is an ack; if it raises, that is logged (logger "due"),
    and the job is tried again as its retry policy says.  Threads hold the interpreter's lock while
    a handler runs.  As a context manager it stops at the end.
    """

    def __init__(self, queue: Queue, handler: Callable[[Job], Union[Answer, None]],
                 threads: int = 1, topics: Sequence[str] = (), lease: Seconds = 0,
                 name: str = "") -> None:
        self._raw: Any = ffi.NULL
        self._queue = queue
        self._handler = handler
        self._call = ffi.callback("due_handler", self._handle)
        numbers = ffi.new("int[]", [queue.topic(each) for each in topics])
        options = ffi.new("due_workers_options *")
        options.size = ffi.sizeof("due_workers_options")
        options.lease_ns = span_ns(lease)
        called = ffi.new("char[]", name.encode())
        options.name = called if name else ffi.NULL
        raw = ffi.new("due_workers **")
        check(lib.due_workers_start(raw, queue._raw, numbers if topics else ffi.NULL, len(topics),
                                    threads, self._call, ffi.NULL, options))
        self._raw = raw[0]
        LIVE.add(self)

    def _handle(self, _: Any, raw: Any, answer: Any) -> None:
        answer.kind, answer.delay_ns = lib.DUE_ANSWER_NACK, -1
        copy = ffi.new("due_job *", raw[0])
        try:
            said = self._handler(WorkerJob(copy, self._queue))
        except Exception:  # whatever it is, the job has failed
            LOG.exception("a handler has raised")
            return
        finally:
            copy.queue = ffi.NULL  # whoever keeps the job has its bytes, and nothing of the pool
        if said is None:
            answer.kind = lib.DUE_ANSWER_ACK
            return
        answer.kind = said.kind
        answer.delay_ns = -1 if said.delay is None else span_ns(said.delay)
        answer.why = said.why.encode()[:ffi.sizeof(answer.why) - 1]

    def stop(self, timeout: Optional[Seconds] = None) -> None:
        """Take no more jobs, and wait for the handlers that run."""
        check(lib.due_workers_stop(self._raw, timeout_ns(timeout)))

    def stats(self) -> Dict[str, int]:
        """What it has done, by the names of struct due_workers_stats."""
        raw = ffi.new("struct due_workers_stats *")
        check(lib.due_workers_stats_read(self._raw, raw))
        return {name: int(getattr(raw, name))
                for name, _ in ffi.typeof("struct due_workers_stats").fields if name != "reserved"}

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.stop()

    def __del__(self) -> None:
        raw = getattr(self, "_raw", ffi.NULL)
        if raw != ffi.NULL and lib is not None:
            lib.due_workers_stop(raw, 2 ** 63 - 1)
            lib.due_workers_free(raw)


@atexit.register
def _stop_all() -> None:
    """No handler is called while the interpreter goes away."""
    for pool in list(LIVE):
        lib.due_workers_stop(pool._raw, 5 * 10 ** 9)
