"""The shared libraries, and what the rest of the package shares: times, codes, ids."""

from __future__ import annotations

import math
import os
from datetime import datetime, timedelta, timezone
from typing import Any, Optional, Union

from cffi import FFI

from . import errors
from ._cdef import CDEF, VERSION

FOREVER_NS = 2 ** 63 - 1
Seconds = Union[int, float, timedelta]

ffi: Any = FFI()
ffi.cdef(CDEF)


def load(name: str) -> Any:
    """A library of libdue: from the folder DUE_LIBRARY_PATH, or where the system looks."""
    folder = os.environ.get("DUE_LIBRARY_PATH", "")
    return ffi.dlopen(os.path.join(folder, f"lib{name}.so.{VERSION[0]}"))


def load_whole(name: str) -> Any:
    """The same, with each function looked up now: cffi holds a lock while it looks one up, under
    which a destructor may run that needs another."""
    found = load(name)
    for each in dir(found):
        getattr(found, each, None)  # those of the stores are elsewhere
    return found


lib: Any = load_whole("due")


def text_of(pointer: Any) -> str:
    """A C string."""
    return "" if pointer == ffi.NULL else str(ffi.string(pointer), "utf-8", "replace")


def failure(code: int, text: str = "", hint: str = "") -> errors.Error:
    """The exception for this code."""
    kind = errors.BY_NAME.get(text_of(lib.due_error_name(code)), errors.Error)
    return kind(text or text_of(lib.due_error_text(code)), code, hint)


def check(code: int) -> int:
    """A number that is 0 or more, or an exception."""
    if code < 0:
        raise failure(code)
    return code


def span_ns(span: Seconds) -> int:
    """Seconds, or a timedelta, as nanoseconds; rounded up, so that nothing is early."""
    if isinstance(span, timedelta):
        return min(span // timedelta(microseconds=1) * 1000, FOREVER_NS)
    if isinstance(span, int):
        return min(span * 1_000_000_000, FOREVER_NS)
    if math.isnan(span):
        raise ValueError("a time that is no number")
    whole = span * 1e9
    if whole >= FOREVER_NS:
        return FOREVER_NS
    return max(math.ceil(round(whole, 3)), -FOREVER_NS)


def timeout_ns(timeout: Optional[Seconds]) -> int:
    """None waits without end."""
    return FOREVER_NS if timeout is None else span_ns(timeout)


def moment_ns(moment: Union[datetime, int]) -> int:
    """Nanoseconds of the queue's clock; a datetime is one of the wall clock, and has a zone."""
    if isinstance(moment, int):
        return moment
    if moment.tzinfo is None:
        raise ValueError("a datetime without a zone")
    return (moment - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1) * 1000


def id_text(raw: Any) -> str:
    """An id as 32 hexadecimal digits."""
    text = ffi.new("char[33]")
    return text_of(lib.due_id_format(raw, text))


def id_of(text: str) -> Any:
    """The other way round."""
    raw = ffi.new("due_id *")
    if "\0" in text or lib.due_id_parse(text.encode(), raw) != 0:
        raise errors.InvalidError(f"{text!r} is no id", lib.DUE_EINVAL)
    return raw[0]


def bytes_of(data: Union[bytes, bytearray, memoryview, str]) -> bytes:
    """Text is UTF-8."""
    return data.encode() if isinstance(data, str) else bytes(data)
