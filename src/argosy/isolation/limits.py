"""What a call may use, and what holds a worker: plain values.

In: numbers. Out: frozen dataclasses. Never: enforces anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may use: seconds, and bytes. `memory` is what the call may add to an idle worker.

    A second of work is counted by the worker's own CPU, so that a busy machine does not refuse what a quiet one
    does; `wall` is for what waits, and for a machine that comes to nothing.
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
    """What a program and all that it starts may use: seconds, and bytes. `scratch` is what they may write there."""

    wall: float = 60.0
    cpu: float = 60.0
    memory: int = 1 << 30
    output: int = 64 << 20
    scratch: int = 256 << 20
    processes: int = 128  # threads count too: programs in Go have some for each core

    def __post_init__(self) -> None:
        for name in ("wall", "cpu", "memory", "output", "scratch", "processes"):
            if not getattr(self, name) > 0:
                raise ValueError(f"limit {name} must be above zero, not {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True)
class Confinement:
    """What was put in force in the newest worker or program; `missing` says in sentences what could not be."""

    started: bool = False
    uid: int = -1
    gid: int = -1
    landlock: int = 0  # the kernel's ABI that the rules were written for; 0: none in force
    network: str = "open"  # "none": an empty network; "no-sockets", "no-tcp": refused; "open": not confined
    unix_sockets: str = "open"  # "refused"; "own": no socket of others can be reached; "open": not confined
    seccomp: bool = False  # our own filter of system calls
    session_keyring: bool = False  # an empty one of its own
    own_root: bool = False  # a root folder of its own, with nothing but the places that it may see
    cgroup: bool = False  # a cgroup of its own limits memory and processes
    scratch_tmpfs: bool = False  # its scratch folder is a tmpfs of limited size
    no_new_privs: bool = False
    rlimits: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[str, ...] = ("no worker was started yet",)
    optional_missing: tuple[str, ...] = ()  # the same for what is good to have, and is often not there
