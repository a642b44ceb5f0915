"""Seconds, as flags take them.

In: what was typed. Out: a number. Never: less than none, nor so many that a clock cannot count them.
"""

from __future__ import annotations


def seconds(text: str) -> float:
    found = float(text)
    if not 0 <= found <= 1e8:
        raise ValueError(text)
    return found


seconds.__name__ = "number of seconds"  # what argparse calls it where it is none
