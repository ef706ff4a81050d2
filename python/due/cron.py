"""Cron expressions: the next instant at which a local time comes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Optional

from ._native import failure, ffi, lib, text_of

_BEGIN = datetime(1970, 1, 1, tzinfo=timezone.utc)


def cron_next(expression: str, zone: str = "UTC", after: Optional[datetime] = None) -> datetime:
    """The first instant after this one (now) that the expression names in the zone, in UTC.

    The forms of both are those of due/cron.h, as is what becomes of times that a change to or from
    summer time skips or repeats.
    """
    since = (after or datetime.now(timezone.utc)) - _BEGIN
    words, name = expression.encode(), zone.encode()
    if b"\0" in words + name:
        raise ValueError("a zero byte")
    after_ns = since // timedelta(microseconds=1) * 1000
    found = ffi.new("int64_t *")
    code = lib.due_cron_next(words, name, after_ns, found)
    if code != 0:
        raise failure(code, text_of(lib.due_cron_error(words, name, ffi.NULL)))
    return _BEGIN + timedelta(microseconds=found[0] // 1000)
