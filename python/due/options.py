"""How a queue is opened, and the clock for tests."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional

from . import errors
from ._native import Seconds, check, failure, ffi, lib, load, span_ns, text_of
from .job import Retry

LOG = logging.getLogger("due")
LOG.addHandler(logging.NullHandler())
LEVELS = (logging.INFO, logging.WARNING, logging.ERROR)
CLOCKS = {"monotonic": 0, "boottime": 1, "realtime": 2}


class ManualClock:
    """A clock that stands still until it is turned, for tests."""

    def __init__(self, start: Seconds = 0) -> None:
        self._raw = lib.due_clock_manual(span_ns(start))
        if self._raw == ffi.NULL:
            raise errors.InvalidError("a clock begins at 0 or later", lib.DUE_EINVAL)

    def advance(self, by: Seconds) -> None:
        """Forward; who waits for what comes due now is woken before it returns."""
        check(lib.due_clock_advance(self._raw, span_ns(by)))

    @property
    def now_ns(self) -> int:
        """What it shows."""
        return int(lib.due_clock_now(self._raw))

    def __del__(self) -> None:
        raw = getattr(self, "_raw", None)
        if raw is not None and lib is not None:
            lib.due_clock_free(raw)


@dataclass
class Options:
    """As due_options: what is left as it is, is default.

    `store` is a path, or a redis:// or unix:// URL.  `on_log` gets what the library says, a level
    of logging and a text, from any thread; without one it goes to the logger "due".  `on_discard`
    gets the bytes of each job that is discarded.  A hook must not call its queue.
    """

    name: str = ""
    store: Optional[str] = None
    capacity: int = 0
    clock: str = "monotonic"  # or boottime, realtime; with a store always the wall clock
    manual: Optional[ManualClock] = None
    by_priority: bool = False
    metrics: bool = False
    lease: Seconds = 0
    retry: Optional[Retry] = None
    dead_keep: Seconds = 0
    dead_max: int = 0
    confirm_async: bool = False
    store_timeout: Seconds = 0
    open_timeout: Seconds = 0
    on_log: Optional[Callable[[int, str], None]] = None
    on_discard: Optional[Callable[[bytes], None]] = None
    keep: List[Any] = field(default_factory=list, init=False, repr=False)

    def raw(self) -> Any:
        """As C has it; what it points to is kept here."""
        raw = ffi.new("due_options *")
        raw.size = ffi.sizeof("due_options")
        if self.clock not in CLOCKS:
            raise ValueError(f"{self.clock!r} is no clock: {', '.join(CLOCKS)}")
        raw.clock = CLOCKS[self.clock]
        if self.name:
            raw.name = self._text(self.name)
        if self.manual is not None:
            raw.manual = self.manual._raw
            self.keep.append(self.manual)
        raw.capacity = self.capacity
        raw.order = lib.DUE_ORDER_PRIORITY if self.by_priority else lib.DUE_ORDER_DEADLINE
        raw.metrics = self.metrics
        raw.lease_ns = span_ns(self.lease)
        if self.retry is not None:
            self.retry.fill(raw.retry)
        raw.dead_keep_ns = span_ns(self.dead_keep)
        raw.dead_max = self.dead_max
        raw.confirm = lib.DUE_CONFIRM_ASYNC if self.confirm_async else lib.DUE_CONFIRM_SYNC
        raw.store_timeout_ns = span_ns(self.store_timeout)
        raw.open_timeout_ns = span_ns(self.open_timeout)
        self._hooks(raw)
        return raw

    def _text(self, text: str) -> Any:
        pointer = ffi.new("char[]", text.encode())
        self.keep.append(pointer)
        return pointer

    def _hooks(self, raw: Any) -> None:
        on_log = self.on_log or (lambda level, text: LOG.log(level, "%s", text))

        @ffi.callback("void(void *, enum due_log_level, const char *)")  # type: ignore
        def log(_: Any, level: int, text: Any) -> None:
            on_log(LEVELS[min(level, len(LEVELS) - 1)], text_of(text))

        raw.on_log = log
        self.keep.append(log)
        if self.on_discard is None:
            return
        on_discard = self.on_discard

        @ffi.callback("void(void *, const due_job *)")  # type: ignore
        def discard(_: Any, job: Any) -> None:
            on_discard(bytes(ffi.buffer(job.data, job.len)) if job.len else b"")

        raw.on_discard = discard
        self.keep.append(discard)


STORES = {"sqlite": ("due-sqlite", "due_sqlite_open", "due_sqlite_free"),
          "redis": ("due-redis", "due_redis_open", "due_redis_free")}


def open_store(where: str) -> Any:
    """A store by its path or URL: the pointer, and what frees it if no queue takes it over."""
    kind = "redis" if "://" in where else "sqlite"
    library, name_open, name_free = STORES[kind]
    try:
        native = load(library)
    except OSError as missing:
        raise errors.NotSupportedError(f"lib{library} is not installed: {missing}",
                                       lib.DUE_ENOTSUP) from missing
    store, why = ffi.new("due_store **"), ffi.new("due_error *")
    rc = getattr(native, name_open)(store, where.encode(), ffi.NULL, why)
    if rc != 0:
        raise failure(rc, text_of(why.text), text_of(why.hint))
    return store[0], getattr(native, name_free)
