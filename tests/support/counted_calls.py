"""How much work a function does, in calls: the same on every machine, however busy it is.

In: a function and its arguments. Out: how many functions were called meanwhile, of Python and of C. Never: seconds.
"""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from typing import Any


def calls_of(function: Callable[..., Any], *arguments: Any) -> int:
    """It must not raise: a function that is to fail catches its error itself."""
    profile = cProfile.Profile()
    profile.runcall(function, *arguments)
    return sum(each.callcount for each in profile.getstats())
