"""Limits of confined calls and programs, and the report of the confinement in force.

In: numbers. Out: frozen dataclasses. Never: enforces anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of one call, in seconds and bytes. `memory` is what the call may add to an idle worker.

    `cpu` counts CPU time of the worker, so that a busy machine does not refuse work that an idle machine accepts;
    `wall` limits calls that wait, and an overloaded machine.
    """

    wall: float = 30.0
    cpu: float = 1.0
    memory: int = 256 << 20
    output: int = 10 << 20
    input: int = 32 << 20

    def __post_init__(self) -> None:
        for name in ("wall", "cpu", "memory", "output", "input"):
            if not getattr(self, name) > 0:
                raise ValueError(f"limit {name} must be above zero, not {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """Limits of a program and its children, in seconds and bytes. `scratch` limits writes to its scratch folder."""

    wall: float = 60.0
    cpu: float = 60.0
    memory: int = 1 << 30
    output: int = 64 << 20
    scratch: int = 256 << 20
    processes: int = 128  # including threads: Go programs have several per core

    def __post_init__(self) -> None:
        for name in ("wall", "cpu", "memory", "output", "scratch", "processes"):
            if not getattr(self, name) > 0:
                raise ValueError(f"limit {name} must be above zero, not {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class Confinement:
    """Protections in force in the newest worker or program; `missing` describes those that are not available."""

    started: bool = False
    uid: int = -1
    gid: int = -1
    landlock: int = 0  # the Landlock ABI version of the rules; 0: not in force
    network: str = "open"  # "none": an empty network; "no-sockets", "no-tcp": refused; "open": not confined
    unix_sockets: str = "open"  # "refused"; "own": sockets of other processes are unreachable; "open": not confined
    seccomp: bool = False  # our own filter of system calls
    session_keyring: bool = False  # an empty keyring of its own
    own_root: bool = False  # a root folder of its own, with only the paths that it may see
    cgroup: bool = False  # its own cgroup limits memory and processes
    scratch_tmpfs: bool = False  # its scratch folder is a tmpfs of limited size
    no_new_privs: bool = False
    rlimits: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ("no worker was started yet",)
    optional_missing: tuple[str, ...] = ()  # the same for optional protections, which are often not available
