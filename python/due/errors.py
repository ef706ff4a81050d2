"""What the calls of libdue raise: a class for each code."""

from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """An error of libdue: its code, the name of that ("DUE_EINVAL"), a text, and perhaps a hint."""

    name = "DUE_EUNKNOWN"

    def __init__(self, text: str, code: int = 0, hint: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.hint = hint


class InvalidError(Error, ValueError):
    """An argument is not allowed."""
    name = "DUE_EINVAL"


class NoMemoryError(Error, MemoryError):
    """Out of memory."""
    name = "DUE_ENOMEM"


class AgainError(Error):
    """Nothing there, or no room, and not asked to wait."""
    name = "DUE_EAGAIN"


class TimedOutError(Error, TimeoutError):
    """The timeout has passed."""
    name = "DUE_ETIMEDOUT"


class ClosedError(Error):
    """The queue is closed."""
    name = "DUE_ECLOSED"


class NotFoundError(Error, LookupError):
    """No such job: unknown, or finished."""
    name = "DUE_ENOENT"


class BusyError(Error):
    """The job is being handled, or the queue is in use."""
    name = "DUE_EBUSY"


class ExistsError(Error):
    """A job has this key already; `id` is that job's."""
    name = "DUE_EEXIST"
    id = ""


class DeadlockError(Error):
    """It would wait for the caller itself."""
    name = "DUE_EDEADLK"


class ForkedError(Error):
    """The queue belongs to the parent process."""
    name = "DUE_EFORK"


class NotSupportedError(Error):
    """Not supported here."""
    name = "DUE_ENOTSUP"


class LimitError(Error):
    """A fixed limit is reached (jobs, topics, payload size)."""
    name = "DUE_ELIMIT"


class SystemRefusedError(Error, OSError):
    """The system refused a thread or a descriptor."""
    name = "DUE_ESYS"


class StaleError(Error):
    """The lease has ended: somebody else may have the job."""
    name = "DUE_ESTALE"


class InDoubtError(Error):
    """Sent to the store, and no answer in time; `id` is the job's, of an enqueue."""
    name = "DUE_EINDOUBT"
    id = ""


class FencedError(Error):
    """Another process owns the stored jobs now."""
    name = "DUE_EFENCED"


class StoreError(Error, ConnectionError):
    """The store cannot be reached."""
    name = "DUE_ESTORE"


class NoSpaceError(Error):
    """The store is full."""
    name = "DUE_ENOSPC"


class DurabilityError(Error):
    """The store is less durable than required."""
    name = "DUE_EDURABILITY"


class AccessError(Error, PermissionError):
    """The store refuses: user, password or permission."""
    name = "DUE_EACCES"


class VersionError(Error):
    """Stored by a newer version."""
    name = "DUE_EVERSION"


class LostError(Error):
    """The store has lost what it had confirmed."""
    name = "DUE_ELOST"


class CorruptError(Error):
    """Stored or received bytes make no sense."""
    name = "DUE_ECORRUPT"


BY_NAME: Dict[str, Type[Error]] = {each.name: each for each in list(globals().values())
                                   if isinstance(each, type) and issubclass(each, Error)
                                   and each is not Error}
