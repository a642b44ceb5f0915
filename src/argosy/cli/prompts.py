"""Prompts on the terminal.

In: a question and its plan. Out: the typed line. Never: continues after Ctrl-C; asks about a plan that was not shown.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable

from argosy.errors import UserError


def read_line() -> str:
    """Read a line; "" if stdin is closed. Ctrl-C ends the command at once, also inside an event loop.

    (An event loop would handle the signal only when it runs again: after the answer and the writes.)
    """
    if sys.stdin is None:
        return ""
    previous_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def confirm(question: str) -> bool:
    """True if the user answers yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return read_line().strip().lower() in ("y", "yes")


def confirm_plan(question: str, plan: Iterable[str], *, is_printed: bool, refusal: str) -> None:
    """Raises UserError unless the user agrees to a plan. Shows the plan first if it was not printed to the terminal."""
    sys.stdout.flush()
    if not is_printed or not sys.stdout.isatty():
        print("\n".join(plan), file=sys.stderr)
    if not confirm(question):
        raise UserError(refusal)
