"""Queues."""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Optional, Type, Union

from . import errors
from ._native import (Seconds, bytes_of, check, failure, ffi, id_of, id_text, lib, moment_ns,
                      span_ns, text_of, timeout_ns)
from .job import Job, Retry
from .options import Options, open_store

Bytes = Union[bytes, bytearray, memoryview, str]
Moment = Union[datetime, int]  # nanoseconds of the queue's clock
ON_KEY = {"refuse": 0, "replace": 1, "earliest": 2, "debounce": 3}
REPEAT = {"skip": 0, "once": 1, "after": 2}
ALL_TOPICS = -1
LIVE: "weakref.WeakSet[Queue]" = weakref.WeakSet()
FAIR = 16  # jobs that an asynchronous loop takes before others have their turn


@dataclass(frozen=True)
class Info:
    """What is known of a job that waits, or is dead."""

    id: str
    deadline_ns: int
    size: int
    topic: str
    priority: int
    ready: bool = False
    cause: str = ""  # of a dead one: buried, attempts or expired
    reason: str = ""


class Queue:
    """A queue: in memory, in a file or in a Redis.

    As a context manager it is closed at the end.  Any thread may use it; whoever waits in it lets
    other threads run.  Iterating takes jobs until it is closed, with `for` or `async for`.
    """

    def __init__(self, options: Optional[Options] = None, **more: Any) -> None:
        self._raw: Any = ffi.NULL
        self._options = options if options is not None else Options(**more)
        if options is not None and more:
            raise TypeError("either options, or what they are made of")
        raw, why, queue = self._options.raw(), ffi.new("due_error *"), ffi.new("due_queue **")
        free: Optional[Callable[[Any], None]] = None
        if self._options.store is not None:
            raw.store, free = open_store(self._options.store)
        rc = lib.due_open(queue, raw, why)
        if rc != 0:
            if free is not None:
                free(raw.store)
            raise failure(rc, text_of(why.text), text_of(why.hint))
        self._raw = queue[0]
        LIVE.add(self)
        self._topics: Dict[str, int] = {"": 0}

    # ---- Closing --------------------------------------------------------------------------------

    def close(self, drain: bool = False, timeout: Optional[Seconds] = None) -> None:
        """Close it: with drain, when all is delivered; else what waits is discarded, or left to
        the store.  Everyone who waits for a job is told."""
        mode = lib.DUE_CLOSE_DRAIN if drain else lib.DUE_CLOSE_DISCARD
        check(lib.due_close(self._raw, mode, timeout_ns(timeout)))

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        raw = getattr(self, "_raw", ffi.NULL)
        if raw != ffi.NULL and lib is not None:
            lib.due_close(raw, lib.DUE_CLOSE_DISCARD, 15 * 10 ** 9)
            lib.due_free(raw)

    # ---- Topics ---------------------------------------------------------------------------------

    def topic(self, name: str) -> int:
        """The number of a topic, made if it is new."""
        if name not in self._topics:
            self._topics[name] = check(lib.due_topic(self._raw, name.encode()))
        return self._topics[name]

    def topic_name(self, number: int) -> str:
        """The other way round."""
        return text_of(lib.due_topic_name(self._raw, number))

    def _number(self, topic: Optional[str]) -> int:
        return ALL_TOPICS if topic is None else self.topic(topic)

    def pause(self, topic: Optional[str] = None) -> None:
        """Hand out no jobs of this topic, or of any."""
        check(lib.due_pause(self._raw, self._number(topic)))

    def resume(self, topic: Optional[str] = None) -> None:
        """Hand them out again."""
        check(lib.due_resume(self._raw, self._number(topic)))

    def limit(self, topic: str, running: int) -> None:
        """At most so many jobs of this topic run at a time; 0: any number."""
        check(lib.due_topic_limit(self._raw, self.topic(topic), running))

    # ---- Putting in -----------------------------------------------------------------------------

    def enqueue(self, data: Bytes = b"", *, delay: Seconds = 0, at: Optional[Moment] = None,
                topic: str = "", priority: int = 0, key: Optional[Bytes] = None,
                on_key: str = "refuse", keep_key: Seconds = 0, headers: Bytes = b"",
                retry: Optional[Retry] = None, ttl: Seconds = 0, expires: Optional[Moment] = None,
                every: Seconds = 0, repeat: str = "skip", group: Optional[Bytes] = None,
                timeout: Optional[Seconds] = 0) -> str:
        """Put a job in, due after `delay`, or `at` a time; its id.

        `timeout` is how long to wait for room in a queue with a capacity.
        """
        keep: List[Any] = []
        spec, more = ffi.new("due_spec *"), ffi.new("due_extra *")

        def hold(value: Bytes) -> Any:
            keep.append(ffi.from_buffer(bytes_of(value)))
            return keep[-1]

        payload = hold(data)
        spec.size, more.size = ffi.sizeof("due_spec"), ffi.sizeof("due_extra")
        spec.data, spec.len = (payload if len(payload) else ffi.NULL), len(payload)
        spec.delay_ns = span_ns(delay)
        if at is not None:
            self._is_wall(at)
            spec.at_ns, spec.flags = moment_ns(at), lib.DUE_SPEC_AT
        spec.topic, spec.priority = self.topic(topic), priority
        more.keep_key_ns, more.on_key = span_ns(keep_key), ON_KEY[on_key]
        more.ttl_ns, more.every_ns, more.repeat = span_ns(ttl), span_ns(every), REPEAT[repeat]
        if key is not None:
            more.key, more.key_len = hold(key), len(keep[-1])
        if group is not None:
            more.group, more.group_len = hold(group), len(keep[-1])
        if headers:
            more.headers, more.headers_len = hold(headers), len(keep[-1])
        if expires is not None:
            self._is_wall(expires)
            more.expires_ns = moment_ns(expires)
        if retry is not None:
            more.retry = policy = ffi.new("due_retry *")
            retry.fill(policy)
        if key is not None or group is not None or headers or retry is not None or ttl or every \
                or keep_key or expires is not None:
            spec.more = more
        return self._enqueue(spec, timeout)

    def _enqueue(self, spec: Any, timeout: Optional[Seconds]) -> str:
        id_raw = ffi.new("due_id *")
        rc = lib.due_enqueue(self._raw, spec, timeout_ns(timeout), id_raw)
        if rc == 0:
            return id_text(id_raw[0])
        text = ""
        if rc in (lib.DUE_EINVAL, lib.DUE_ENOTSUP, lib.DUE_ELIMIT):
            text = text_of(lib.due_spec_error(self._raw, spec))
        error = failure(rc, text)
        if isinstance(error, (errors.ExistsError, errors.InDoubtError)):
            error.id = id_text(id_raw[0])
        raise error

    def _is_wall(self, moment: Moment) -> None:
        if isinstance(moment, datetime) and (
                self._options.manual is not None or
                (self._options.clock != "realtime" and self._options.store is None)):
            raise errors.InvalidError("a datetime is for a queue of the wall clock", lib.DUE_EINVAL)

    # ---- Taking out -----------------------------------------------------------------------------

    def dequeue(self, timeout: Optional[Seconds] = None) -> Optional[Job]:
        """Take a due job for good.  None: no job came in time.  Raises ClosedError."""
        return self._take(lib.due_dequeue, timeout)

    def reserve(self, timeout: Optional[Seconds] = None) -> Optional[Job]:
        """Take a due job on a lease: see Job."""
        return self._take(lib.due_reserve, timeout)

    def _take(self, how: Any, timeout: Optional[Seconds]) -> Optional[Job]:
        raw = ffi.new("due_job *")
        rc = how(self._raw, raw, timeout_ns(timeout))
        if rc in (lib.DUE_EAGAIN, lib.DUE_ETIMEDOUT):
            return None
        check(rc)
        return Job(raw, self)

    def __iter__(self) -> Iterator[Job]:
        """Jobs, taken for good, until the queue is closed."""
        try:
            while True:
                job = self.dequeue()
                if job is not None:
                    yield job
        except errors.ClosedError:
            return

    def __aiter__(self) -> AsyncIterator[Job]:
        return self.jobs()

    async def jobs(self, reserve: bool = False) -> AsyncIterator[Job]:
        """Jobs, in the running event loop, until the queue is closed; with reserve on a lease."""
        how, taken, futile = (self.reserve if reserve else self.dequeue), 0, 0
        try:
            while True:
                job = how(0)
                if job is None:
                    await self.readable()
                    futile += 1
                    if futile > 2:  # a job is due, but its store is away
                        await asyncio.sleep(0.01)
                    continue
                yield job
                taken, futile = taken + 1, 0
                if taken % FAIR == 0:
                    await asyncio.sleep(0)
        except errors.ClosedError:
            return

    async def readable(self) -> None:
        """Wait until a job may be due."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        fd = os.dup(self.fileno())  # each waiter has its own: a loop knows a descriptor once

        def wake() -> None:
            loop.remove_reader(fd)
            if not woken.done():
                woken.set_result(None)

        loop.add_reader(fd, wake)
        try:
            await woken
        finally:
            loop.remove_reader(fd)
            os.close(fd)

    def fileno(self) -> int:
        """A descriptor that is readable when a job may be due, for select and its kin."""
        return check(lib.due_fd(self._raw))

    # ---- Naming a job ---------------------------------------------------------------------------

    def cancel(self, job_id: str) -> Job:
        """Take a job back that nobody has.  Raises BusyError, NotFoundError."""
        raw = ffi.new("due_job *")
        check(lib.due_cancel(self._raw, id_of(job_id), raw))
        return Job(raw, self)

    def cancel_key(self, key: Bytes) -> Job:
        """Take the job back that has this key."""
        raw, name = ffi.new("due_job *"), bytes_of(key)
        check(lib.due_cancel_key(self._raw, name, len(name), raw))
        return Job(raw, self)

    def id_of_key(self, key: Bytes) -> str:
        """The id of the job that has this key."""
        raw, name = ffi.new("due_id *"), bytes_of(key)
        check(lib.due_id_of_key(self._raw, name, len(name), raw))
        return id_text(raw[0])

    def reschedule(self, job_id: str, at: Moment) -> None:
        """Give a waiting job another deadline."""
        self._is_wall(at)
        check(lib.due_reschedule(self._raw, id_of(job_id), moment_ns(at)))

    def promote(self, job_id: str) -> None:
        """It is due now."""
        check(lib.due_promote(self._raw, id_of(job_id)))

    def update(self, job_id: str, data: Bytes) -> None:
        """Give a waiting job other bytes."""
        content = bytes_of(data)
        check(lib.due_update(self._raw, id_of(job_id), content, len(content)))

    def read(self, job_id: str) -> bytes:
        """The bytes of a job that waits or is dead."""
        size, buffer = ffi.new("size_t *"), ffi.new("char[]", 4096)
        while True:
            check(lib.due_read(self._raw, id_of(job_id), buffer, len(buffer), size))
            if size[0] <= len(buffer):
                return bytes(ffi.buffer(buffer, size[0]))
            buffer = ffi.new("char[]", size[0])

    def find(self, job_id: str) -> Info:
        """What is known of a waiting job."""
        raw = ffi.new("due_info *")
        check(lib.due_find(self._raw, id_of(job_id), raw))
        return self._info(raw)

    def kick(self, job_id: str) -> None:
        """A dead job is handed out again."""
        check(lib.due_kick(self._raw, id_of(job_id)))

    # ---- The whole queue ------------------------------------------------------------------------

    def _info(self, raw: Any) -> Info:
        return Info(id_text(raw.id), raw.deadline_ns, raw.len, self.topic_name(raw.topic),
                    raw.priority, bool(raw.ready))

    def list(self) -> Iterator[Info]:
        """The jobs that wait, in no order."""
        cursor, page = ffi.new("uint64_t *"), ffi.new("due_info[64]")
        while True:
            n = check(lib.due_list(self._raw, cursor, page, 64))
            if n == 0:
                return
            for i in range(n):
                yield self._info(page[i])

    def list_dead(self) -> Iterator[Info]:
        """The dead jobs."""
        cursor, page = ffi.new("uint64_t *"), ffi.new("due_dead[64]")
        causes = ("", "buried", "attempts", "expired")
        while True:
            n = check(lib.due_list_dead(self._raw, cursor, page, 64))
            if n == 0:
                return
            for i in range(n):
                raw = page[i]
                yield Info(id_text(raw.id), raw.deadline_ns, raw.len, self.topic_name(raw.topic),
                           raw.priority, False, causes[raw.cause], text_of(raw.reason))

    def _many(self, how: Any, topic: Optional[str]) -> int:
        count = ffi.new("uint64_t *")
        check(how(self._raw, self._number(topic), count))
        return int(count[0])

    def clear(self, topic: Optional[str] = None) -> int:
        """Discard the jobs that wait, of this topic or of all; how many."""
        return self._many(lib.due_clear, topic)

    def clear_dead(self, topic: Optional[str] = None) -> int:
        """Discard the dead ones."""
        return self._many(lib.due_clear_dead, topic)

    def kick_all(self, topic: Optional[str] = None) -> int:
        """Hand all dead ones out again."""
        return self._many(lib.due_kick_all, topic)

    def flush(self, timeout: Optional[Seconds] = None) -> None:
        """Wait until the store has all that was changed before."""
        check(lib.due_flush(self._raw, timeout_ns(timeout)))

    def stats(self) -> Dict[str, int]:
        """What it has done and holds, by the names of struct due_stats."""
        raw = ffi.new("struct due_stats *")
        check(lib.due_stats_read(self._raw, raw))
        return {name: int(getattr(raw, name))
                for name, _ in ffi.typeof("struct due_stats").fields if name != "reserved"}

    def show_figures(self, path: Union[str, bytes, "os.PathLike[str]"]) -> None:
        """From now on its figures stand in a file there, until the queue is gone: for Figures, and
        for `duectl top`."""
        name = os.fsencode(path)
        if b"\0" in name:
            raise ValueError("a path with a NUL")
        check(lib.due_figures_open(self._raw, name))

    def census(self, topic: Optional[str] = None,
               timeout: Optional[Seconds] = None) -> Dict[str, int]:
        """What the queue holds, whoever shares it, by the names of struct due_queue_census."""
        raw = ffi.new("struct due_queue_census *")
        check(lib.due_census(self._raw, self._number(topic), raw, timeout_ns(timeout)))
        return {name: int(getattr(raw, name))
                for name, _ in ffi.typeof("struct due_queue_census").fields if name != "reserved"}

    def processes(self, timeout: Optional[Seconds] = None) -> Iterator[Dict[str, Any]]:
        """Who has the queue open, each by the names of due_process."""
        cursor, page = ffi.new("uint64_t *"), ffi.new("due_process[64]")
        names = [name for name, _ in ffi.typeof("due_process").fields
                 if name not in ("host", "reserved")]
        while True:
            n = check(lib.due_processes(self._raw, cursor, page, 64, timeout_ns(timeout)))
            if n == 0:
                return
            for i in range(n):
                yield {"host": text_of(page[i].host),
                       **{name: int(getattr(page[i], name)) for name in names}}

    def metrics(self) -> str:
        """Everything as text for Prometheus."""
        size = 16384
        while True:
            text = ffi.new("char[]", size)
            need = check(lib.due_metrics_write(self._raw, text, size))
            if need < size:
                return text_of(text)
            size = need + 4096

    @property
    def now_ns(self) -> int:
        """What its clock shows."""
        return int(lib.due_now(self._raw))


@atexit.register
def _close_all() -> None:
    """No hook is called while the interpreter goes away."""
    for queue in list(LIVE):
        lib.due_close(queue._raw, lib.DUE_CLOSE_DISCARD, 5 * 10 ** 9)
