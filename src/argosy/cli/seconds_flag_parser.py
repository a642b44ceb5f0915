"""Parses durations in seconds, for flags.

In: text. Out: a number. Never: a negative number, or one too large for a clock.
"""

from __future__ import annotations


def parse_seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1e8:
        raise ValueError(text)
    return number


parse_seconds.__name__ = "number of seconds"  # name in argparse's error messages
