"""libdue from Python: a delay queue whose jobs come at their deadline, each to exactly one.

    import due

    with due.Queue() as queue:
        queue.enqueue("the tea", delay=0.3)
        print(queue.dequeue().text, "is ready")
"""

from . import errors
from ._native import lib as _lib, text_of as _text_of
from .errors import *  # noqa: F401,F403
from .errors import Error
from .cron import cron_next
from .figures import Figures, FigureSet
from .job import Job, Retry
from .options import ManualClock, Options
from .queue import Info, Queue
from .workers import Answer, Workers, ack, bury, nack, snooze


def version() -> str:
    """The version of the library that runs, such as "0.1.0"."""
    return _text_of(_lib.due_version_text())


__all__ = ["Answer", "Error", "Figures", "FigureSet", "Info", "Job", "ManualClock", "Options",
           "Queue", "Retry", "Workers", "ack", "bury", "cron_next", "errors", "nack", "snooze",
           "version"] + \
    [kind.__name__ for kind in errors.BY_NAME.values()]
