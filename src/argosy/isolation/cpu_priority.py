"""The CPU priority of confined work that takes long: what is quick, and what schedules it, has the CPU first.

In: processes of confined work. Out: nothing. Never: raises a priority; fails where the system does not allow it.
"""

from __future__ import annotations

import os

LONG_SECONDS = 0.25  # after which work counts as long
_NICE = 5  # a third of the weight of others: where other programs take all cores, long work still gets on


def lower_groups(groups: set[int]) -> None:
    """Lower every thread of these process groups."""
    for group in groups:
        try:
            os.setpriority(os.PRIO_PGRP, group, min(os.getpriority(os.PRIO_PGRP, group) + _NICE, 19))
        except OSError:
            pass  # it ended meanwhile, or belongs to somebody else by now


def lower_session(pid: int | str = "self") -> None:
    """Lower the whole session: some kernels share the CPU among sessions first, then within each."""
    try:
        with open(f"/proc/{pid}/autogroup", "w") as group:
            group.write(str(_NICE))
    except OSError:
        pass  # this kernel does not, or it is not ours to say
