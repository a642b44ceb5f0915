"""The errors of confine: which limit, what the function said, how the worker died.

In: facts. Out: subclasses of ArgosyError. Never: a traceback, or more than a few KiB of a stranger's text.
"""

from __future__ import annotations

import signal
from typing import Literal

from argosy.errors import ArgosyError, LimitError, UserError
from argosy.isolation.limits import Limits, ProgramLimits

TIMED_OUT, OUT_OF_MEMORY = "timed out", "ran out of memory"
LimitName = Literal["wall", "cpu", "memory", "output", "input", "scratch"]


_EXHAUSTED: dict[LimitName, str] = {"wall": TIMED_OUT, "cpu": TIMED_OUT, "memory": OUT_OF_MEMORY}


class OverLimit(LimitError):
    """A call went over the limit that `limit` names."""

    def __init__(self, limit: LimitName, message: str, *, where: str = "") -> None:
        super().__init__(message, where=where)
        self.limit: LimitName = limit
        self.exhausted = _EXHAUSTED.get(limit, "")


class ConfinedError(UserError):
    """The function raised; `message` is the exception's text."""


class CrashError(ConfinedError):
    """The worker ended by itself in the middle of a call: an abort, a fault, an exit."""


class RefusedError(ArgosyError):
    """This function may not be run confined, or its module cannot be loaded."""


class NotConfinedError(UserError, RefusedError):
    """Confinement is required (see requirement.py), and this machine cannot confine the call or program."""


def over_limit(limit: LimitName, limits: Limits, where: str) -> OverLimit:
    """The error for `limit`, with the limit's value in the text."""
    text = {
        "wall": f"took longer than {limits.wall:g} s",
        "cpu": f"used more than {limits.cpu:g} s of CPU",
        "memory": f"needs more than {_size(limits.memory)} of memory",
        "output": f"its answer is larger than {_size(limits.output)}",
        "input": f"its input is larger than {_size(limits.input)}",
    }[limit]
    return OverLimit(limit, f"{text} (limit {limit})", where=where)


def program_over(limit: LimitName, limits: ProgramLimits, where: str) -> OverLimit:
    """The same for a program and all that it started."""
    text = {
        "wall": f"took longer than {limits.wall:g} s",
        "cpu": f"used more than {limits.cpu:g} s of CPU",
        "memory": f"needs more than {_size(limits.memory)} of memory",
        "scratch": f"wrote more than {_size(limits.scratch)} to its scratch folder",
    }.get(limit, f"its output is larger than {_size(limits.output)}")
    return OverLimit(limit, f"{text} (limit {limit})", where=where)


def death(status: int | None, limits: Limits, where: str) -> OverLimit | CrashError:
    """What the wait status of a worker that ended in the middle of a call means."""
    if status is None:
        return CrashError("the worker ended and left no status; try again", where=where)
    if status >= 0:
        return CrashError(f"the worker left with exit code {status} instead of an answer", where=where)
    number = -status
    if number in (signal.SIGPROF, signal.SIGXCPU):
        return over_limit("cpu", limits, where)
    if number == signal.SIGKILL:
        return CrashError("the worker was killed by the system, most likely for want of memory", where=where)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return CrashError(f"the worker crashed ({name})", where=where)


def _size(count: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:g} {unit}"
    return f"{count} bytes"
