"""Ask the person at the terminal.

In: a question, and a plan that it is about. Out: the line that was typed. Never: waits on when Ctrl-C was pressed; asks
about a plan that nobody has seen.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable

from argosy.errors import UserError


def read_line() -> str:
    """An empty text where nobody can answer. Ctrl-C ends the command here and now, inside an event loop too.

    (A loop takes the signal for itself and looks at it when it runs again: after the answer, and after the writes.)
    """
    if sys.stdin is None:
        return ""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)


def asked(question: str) -> bool:
    """Whether somebody at the terminal says yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return read_line().strip().lower() in ("y", "yes")


def agree(question: str, plan: Iterable[str], *, is_printed: bool, refusal: str) -> None:
    """Raises UserError unless somebody says yes to a plan. One that was not printed, or to a file, is shown first."""
    sys.stdout.flush()
    if not is_printed or not sys.stdout.isatty():
        print("\n".join(plan), file=sys.stderr)
    if not asked(question):
        raise UserError(refusal)
