"""Lowers the CPU priority of long confined work, so that quick work and its scheduler run first.

In: processes of confined work. Out: nothing. Never: raises a priority; fails if the system does not allow it.
"""

from __future__ import annotations

import os

LONG_SECONDS = 0.25  # after this time, work counts as long
_NICE = 5  # a third of the weight of other processes: long work still progresses on a busy machine


def lower_group_priorities(groups: set[int]) -> None:
    """Lower the priority of every thread of these process groups."""
    for group in groups:
        try:
            os.setpriority(os.PRIO_PGRP, group, min(os.getpriority(os.PRIO_PGRP, group) + _NICE, 19))
        except OSError:
            pass  # it has ended, or its id now belongs to another user


def lower_session(pid: int | str = "self") -> None:
    """Lower the priority of the whole session: some kernels share the CPU among sessions first (autogroup)."""
    try:
        with open(f"/proc/{pid}/autogroup", "w") as group:
            group.write(str(_NICE))
    except OSError:
        pass  # the kernel has no autogroups, or does not allow it
