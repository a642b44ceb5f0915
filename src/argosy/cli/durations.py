"""Parses durations in seconds, for flags.

In: text. Out: a number. Never: a negative number, or one too large for a clock.
"""

from __future__ import annotations


def seconds(text: str) -> float:
    found = float(text)
    if not 0 <= found <= 1e8:
        raise ValueError(text)
    return found


seconds.__name__ = "number of seconds"  # name in argparse's error messages
