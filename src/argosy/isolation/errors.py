"""Errors of confined calls: an exceeded limit, an exception of the function, a crash of the worker.

In: facts. Out: subclasses of ArgosyError. Never: contains a traceback, or more than a few KiB of untrusted text.
"""

from __future__ import annotations

import signal
from typing import Literal

from argosy.errors import ArgosyError, LimitError, UserError
from argosy.isolation.limit_and_confinement_types import CallLimits, ProgramLimits

TIMED_OUT, OUT_OF_MEMORY = "timed out", "ran out of memory"
LimitName = Literal["wall", "cpu", "memory", "output", "input", "scratch"]


_EXHAUSTION_REASONS: dict[LimitName, str] = {"wall": TIMED_OUT, "cpu": TIMED_OUT, "memory": OUT_OF_MEMORY}


class LimitExceeded(LimitError):
    """A call exceeded the limit named by `limit`."""

    def __init__(self, limit: LimitName, message: str, *, where: str = "") -> None:
        super().__init__(message, where=where)
        self.limit: LimitName = limit
        self.exhaustion_reason = _EXHAUSTION_REASONS.get(limit, "")


class ConfinedError(UserError):
    """The function raised; `message` is the exception's text."""


class CrashError(ConfinedError):
    """The worker ended during a call: an abort, a segmentation fault, an exit."""


class RefusedError(ArgosyError):
    """The function or program may not be run confined, or cannot be loaded."""


class NotConfinedError(UserError, RefusedError):
    """Confinement is required (see confinement_requirement.py), but this machine cannot confine the call or program."""


def build_limit_error(limit: LimitName, limits: CallLimits, where: str) -> LimitExceeded:
    """Build the error for an exceeded limit of a call, with its value in the message."""
    text = {
        "wall": f"took longer than {limits.wall:g} s",
        "cpu": f"used more than {limits.cpu:g} s of CPU",
        "memory": f"needs more than {_format_size(limits.memory)} of memory",
        "output": f"its result is larger than {_format_size(limits.output)}",
        "input": f"its input is larger than {_format_size(limits.input)}",
    }[limit]
    return LimitExceeded(limit, f"{text} (limit {limit})", where=where)


def build_program_limit_error(limit: LimitName, limits: ProgramLimits, where: str) -> LimitExceeded:
    """Build the error for an exceeded limit of a program and its children."""
    text = {
        "wall": f"took longer than {limits.wall:g} s",
        "cpu": f"used more than {limits.cpu:g} s of CPU",
        "memory": f"needs more than {_format_size(limits.memory)} of memory",
        "scratch": f"wrote more than {_format_size(limits.scratch)} to its scratch folder",
    }.get(limit, f"its output is larger than {_format_size(limits.output)}")
    return LimitExceeded(limit, f"{text} (limit {limit})", where=where)


def build_death_error(status: int | None, limits: CallLimits, where: str) -> LimitExceeded | CrashError:
    """Build the error for a worker that ended during a call, from its exit status (negative: a signal)."""
    if status is None:
        return CrashError("the worker ended without an exit status; try again", where=where)
    if status >= 0:
        return CrashError(f"the worker exited with code {status} during the call", where=where)
    number = -status
    if number in (signal.SIGPROF, signal.SIGXCPU):
        return build_limit_error("cpu", limits, where)
    if number == signal.SIGKILL:
        return CrashError("the worker was killed by the system, most likely because memory ran out", where=where)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    return CrashError(f"the worker crashed ({name})", where=where)


def _format_size(count: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:g} {unit}"
    return f"{count} bytes"
