"""Jobs that were handed out, and how they are tried again."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Sequence, Type

from ._native import Seconds, check, ffi, id_text, lib, span_ns

if TYPE_CHECKING:
    from .queue import Queue


@dataclass(frozen=True)
class Retry:
    """How a job is tried again: made by fixed(), exponential() or ladder()."""

    kind: int = 0
    delay: Seconds = 0
    cap: Seconds = 0
    rungs: Sequence[Seconds] = field(default_factory=tuple)
    attempts: int = 0  # 0: without end

    @staticmethod
    def fixed(delay: Seconds, attempts: int = 0) -> Retry:
        """So long after each failure."""
        return Retry(lib.DUE_RETRY_FIXED, delay, attempts=attempts)

    @staticmethod
    def exponential(first: Seconds, cap: Seconds = 0, attempts: int = 0) -> Retry:
        """At random between 0 and this, twice as much after each more, up to the cap."""
        return Retry(lib.DUE_RETRY_EXPONENTIAL, first, cap, attempts=attempts)

    @staticmethod
    def ladder(*rungs: Seconds) -> Retry:
        """The first delay after the first failure, and so on; then it is dead."""
        if not 1 <= len(rungs) <= 16:
            raise ValueError("a ladder has 1 to 16 rungs")
        return Retry(lib.DUE_RETRY_LADDER, rungs=rungs)

    def fill(self, raw: Any) -> None:
        """Into a due_retry."""
        raw.kind = self.kind
        raw.delay_ns = span_ns(self.delay)
        raw.cap_ns = span_ns(self.cap)
        raw.attempts_max = self.attempts
        raw.rungs = len(self.rungs)
        for i, rung in enumerate(self.rungs):
            raw.rung_ns[i] = span_ns(rung)


class Job:
    """A job that was handed out.  Its bytes are a copy.

    One that was dequeued is yours.  One that was reserved has to be answered for: by ack(), nack(),
    snooze() or bury(); or as a context manager, which acks it, and on an exception gives it back to
    be tried again.  One that is forgotten unanswered is handed out again when its lease ends.
    """

    def __init__(self, raw: Any, queue: Queue) -> None:
        self._raw = raw
        self._queue = queue  # which lives as long as its jobs do
        self.id: str = id_text(raw.id)
        self.data: bytes = bytes(ffi.buffer(raw.data, raw.len)) if raw.len else b""
        self.headers: bytes = \
            bytes(ffi.buffer(raw.headers, raw.headers_len)) if raw.headers_len else b""
        self.deadline_ns: int = raw.deadline_ns
        self.lateness_ns: int = raw.lateness_ns
        self.topic: str = queue.topic_name(raw.topic)
        self.priority: int = raw.priority
        self.attempts: int = raw.attempts
        self.failures: int = raw.failures
        self.reserved: bool = raw.token != 0
        if not self.reserved:
            self._let_go()

    def _mine(self) -> Any:
        return self._raw

    def _let_go(self) -> None:
        lib.due_job_done(self._raw)

    @property
    def text(self) -> str:
        """The bytes as UTF-8."""
        return self.data.decode()

    @property
    def stopping(self) -> bool:
        """Should whoever has this reserved job end soon: lease over, cancelled, closed?"""
        return bool(lib.due_job_stopping(self._raw))

    def ack(self) -> None:
        """It is done."""
        check(lib.due_ack(self._mine()))

    def nack(self, delay: Optional[Seconds] = None) -> None:
        """It has failed: again after this delay, or as its retry policy says."""
        check(lib.due_nack(self._mine(), -1 if delay is None else span_ns(delay)))

    def snooze(self, delay: Seconds) -> None:
        """Not now; it has not failed."""
        check(lib.due_snooze(self._mine(), span_ns(delay)))

    def bury(self, reason: str = "") -> None:
        """It is dead: kept, not handed out until it is kicked."""
        check(lib.due_bury(self._mine(), reason.encode()))

    def extend(self, lease: Seconds) -> None:
        """The lease now ends so long from now."""
        check(lib.due_extend(self._mine(), span_ns(lease)))

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._raw.queue == ffi.NULL:
            return  # answered for
        if not self.reserved:
            return
        if error is None:
            self.ack()
        else:
            lib.due_nack(self._raw, -1)  # what was raised goes on, whatever the answer

    def __repr__(self) -> str:
        return f"<due.Job {self.id} {self.data[:20]!r}>"

    def __del__(self) -> None:
        if getattr(self, "_raw", None) is not None and lib is not None:
            self._let_go()
